-- Letters lose their marks, and words in Cyrillic are stemmed as Russian ones in an English index: every document is read again. The
-- old ones answer meanwhile.
update search_lexical_state set scanned = 0, complete = false;
