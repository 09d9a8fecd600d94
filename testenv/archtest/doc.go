// Package archtest holds the architecture of the project as data (floors.go) and the
// rules that follow from it, so that plain go test says which one a change breaks:
//
//   - top-level names, names of binaries, no packages called utils and the like;
//   - who may import whom (floors), that adapters stay apart, that testenv is for
//     tests;
//   - what pure packages may not import or call: they get time and seeds as arguments;
//   - where the environment is read, streams are written and contexts begin;
//   - what a binary may link, and how large the plugin may be;
//   - modules that are not used at all;
//   - that relative links in the texts for people lead somewhere;
//   - that no released binary holds a crash point (daemon/api/crashpoint).
//
// A package that the table does not know fails: it needs a place before it is used.
// Each rule is tested against a fixture that breaks it.
package archtest
