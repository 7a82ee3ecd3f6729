"""BrowseComp and BrowseComp-Plus; see README.md."""
