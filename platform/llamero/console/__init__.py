"""Pages for people: the landing page, the API's reference, the admin's dashboard."""
