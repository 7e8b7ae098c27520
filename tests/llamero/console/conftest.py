"""People of each kind, with their browsers."""

import pytest
from django.contrib.auth.models import User
from django.test import Client


@pytest.fixture
def staff_browser(db: None) -> Client:
    """The browser of a superuser."""
    browser = Client()
    browser.force_login(User.objects.create_superuser("sam", password="x"))
    return browser


@pytest.fixture
def plain_browser(db: None) -> Client:
    """The browser of someone who is signed in, but not of the staff."""
    browser = Client()
    browser.force_login(User.objects.create_user("pat", password="x"))
    return browser
