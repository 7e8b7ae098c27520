"""Who changed what: every change of what operators look after, with before and after."""
