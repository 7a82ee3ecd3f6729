"""One HTML file that holds a whole report and opens anywhere, offline."""
