"""What people may do here: the roles of operators, and what everybody does for themselves."""
