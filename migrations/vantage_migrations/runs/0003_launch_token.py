from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0002_fork_choice'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='token',
            field=models.UUIDField(null=True),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.UniqueConstraint(fields=('team', 'token'), name='one_run_per_launch'),
        ),
    ]
