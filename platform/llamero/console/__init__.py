"""Pages for people: the landing page, the playground, the admin's dashboard."""
