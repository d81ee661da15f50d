"""Tables of texts in the languages of papers and spreadsheets."""
