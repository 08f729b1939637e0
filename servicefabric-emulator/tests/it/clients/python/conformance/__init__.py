"""What the checks of the vendor's clients share."""
