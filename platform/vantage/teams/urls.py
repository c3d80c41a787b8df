"""Addresses of this app."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import URLPattern, path

from vantage.teams import views

urlpatterns: list[URLPattern] = [
    path("login/", LoginView.as_view(template_name="teams/login.html", redirect_authenticated_user=True), name="login"),
    path("login/link/<str:token>", views.open_login_link, name="login_link"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("team/", views.team, name="team"),
    path("team/members/", views.add_member, name="add_member"),
    path("team/members/<int:pk>/", views.change_member, name="change_member"),
    path("team/members/<int:pk>/link/", views.make_link, name="make_link"),
    path("team/switch/", views.switch_team, name="switch_team"),
    path("team/new/", views.new_team, name="new_team"),
    path("team/password/", views.password, name="password"),
]
