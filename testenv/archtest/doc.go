// Package archtest holds the architecture of the project as data (layers.go) and the rules
// that follow from it, so that go test reports which rule a change breaks:
//
//   - top-level names, names of binaries, no packages called utils and the like;
//   - which packages may import which (layers), that adapters do not import each other, and
//     that testenv is only for tests;
//   - what pure packages may not import or call: they receive time and seeds as arguments;
//   - where code may read the environment, write to streams and create contexts;
//   - what a binary may link, and how large the plugin may be;
//   - which modules are forbidden;
//   - that relative links in the documentation are not dead, that what comments refer to
//     exists, and that neither cites notes outside the repository;
//   - that no released binary contains a crash point (daemon/api/crashpoint).
//
// A package that is missing from the table fails: give it a layer first.
// Each rule is tested against a fixture that breaks it.
package archtest
