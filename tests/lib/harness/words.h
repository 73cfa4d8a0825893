/* SPDX-License-Identifier: MIT */
/* Words: arguments for programs that are run by their names alone. */
#ifndef KXFER_TEST_WORDS_H
#define KXFER_TEST_WORDS_H

#define WORDS_MAX	16

int words_or_environment(int argc, char ***argv);

#endif /* KXFER_TEST_WORDS_H */
