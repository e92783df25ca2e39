"""Looking at models: the card, the plot of the path, the tables of the command line."""
