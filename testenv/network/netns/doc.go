// Package netns makes network namespaces for tests and runs code in them.
//
// A namespace is created on a throw-away thread and kept alive by a bind mount
// at [NS.Path], which other processes (a CNI plugin) can use. [NS.Do] runs a
// function on a thread that was moved into the namespace; a thread that cannot
// be moved back stays locked, which makes the runtime end it. The caller's own
// namespace never changes.
//
// A socket belongs to the namespace it was created in, whichever thread uses it
// later: the helpers here ([NS.Listen], [NS.Dial], [NS.Ping], [NS.EchoTCP])
// create the socket inside and use it outside.
//
// The package needs the rights that testenv.Main gives a test binary: call
// testenv.RequireRoot before New. It must not be linked into a shipped binary.
package netns
