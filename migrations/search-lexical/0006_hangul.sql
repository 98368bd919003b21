-- Words in Hangul, Khmer and Lao are split into pairs of characters too: every document is read again. The old ones answer meanwhile.
update search_lexical_state set scanned = 0, complete = false;
