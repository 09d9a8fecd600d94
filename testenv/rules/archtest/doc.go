// Package archtest holds the architecture of the project as data (layers.go) and the rules
// that follow from it, so that go test reports which rule a change breaks:
//
//   - top-level names, names of binaries, no packages called utils and the like;
//   - which packages may import which (layers), that adapters do not import each other, and
//     that testenv is only for tests;
//   - what pure packages may not import or call: they receive time and seeds as arguments;
//   - that only main exits, and nothing logs through a global or runs before main;
//   - what a binary may link, and how large the plugin may be;
//   - that relative links in the documentation are not dead, that what comments refer to
//     exists, and that neither cites notes outside the repository;
//   - that a default build has no crash point (daemon/api/crashpoint).
//
// .golangci.yml has the rules about calls and modules that need no layers: where code may read
// the environment, write to streams and create contexts, and which modules are forbidden.
//
// A package that is missing from the table fails: give it a layer first.
// Each rule is tested against a fixture that breaks it.
package archtest
