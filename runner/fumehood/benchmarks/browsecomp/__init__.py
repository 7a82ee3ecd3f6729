"""BrowseComp and BrowseComp-Plus, from files that the user has; no question is ever stored in plain text."""
