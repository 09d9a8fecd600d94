// Package netns makes network namespaces for tests and runs code in them.
//
// A namespace is created on a throw-away thread and kept alive by a bind mount
// at [NS.Path], so that other processes (a CNI plugin) can be given the path.
// [NS.Do] runs a function on a thread that was moved into the namespace; a
// thread that cannot be moved back is left locked, which makes the runtime end
// it. The caller's own namespace is never changed.
//
// Sockets belong to the namespace they were created in, whatever thread uses
// them later: the helpers here ([NS.Listen], [NS.Dial], [NS.Ping], [NS.EchoTCP])
// create the socket inside and use it outside.
//
// The package needs the rights that testenv.Main gets for a test binary: call
// testenv.RequireRoot before New. It must not be linked into a shipped binary.
package netns
