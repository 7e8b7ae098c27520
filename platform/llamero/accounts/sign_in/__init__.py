"""Sign-in to the pages through an identity provider, beside the form for passwords."""
