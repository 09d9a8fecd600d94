// Package archtest holds the architecture of the project as data (layers.go) and the
// rules that follow from it, so that go test says which one a change breaks:
//
//   - top-level names, names of binaries, no packages called utils and the like;
//   - which package may import which (layers), that adapters do not import each other,
//     that testenv is only for tests;
//   - what pure packages may not import or call: they get time and seeds as arguments;
//   - where the environment is read, streams are written and contexts begin;
//   - what a binary may link, and how large the plugin may be;
//   - which modules are forbidden;
//   - that relative links in documentation are not dead;
//   - that no released binary contains a crash point (daemon/api/crashpoint).
//
// A package that is not in the table fails: give it a layer first.
// Each rule is tested against a fixture that breaks it.
package archtest
