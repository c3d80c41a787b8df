"""What is asked of a person to import a dataset from the model hub."""

from pydantic import BaseModel, ConfigDict
from vantage_trainer.jobspec import HubFile
from vantage_trainer.spec import setting

from vantage.datasets.columns import Columns


class HubForm(BaseModel):
    model_config = ConfigDict(extra="forbid")

    file_there: HubFile = setting(HubFile.model_construct(), "On the hub")
    leave_out: bool = setting(False, "Leave out records that cannot be used", "Else one of them refuses the file")
    columns: Columns | None = setting(
        None, "Choose the columns", "Off: they are guessed as for an upload, question and answer by their names"
    )
