-- Texts are split at more places than before (letters from digits, and scripts without blanks into pairs): every document is read
-- again. The old ones answer meanwhile.
update search_lexical_state set scanned = 0, complete = false;
