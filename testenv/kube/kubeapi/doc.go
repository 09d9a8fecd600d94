// Package kubeapi gives tests a real Kubernetes API: etcd and kube-apiserver as child
// processes, with the CRDs and roles of deploy/ installed and RBAC on.
//
// [Start] gives a test its own server, [Shared] the one of the test binary, whose
// TestMain is then [Main]. Objects in a shared server are kept apart by name: see
// [Server.Name]. A server is ready two or three seconds after its start and ends
// with its test (binary), even if that is killed. etcd listens on a Unix socket and
// kube-apiserver on a loopback port that is reserved before it starts, so any number
// of servers can run in parallel.
//
// [Server.Kubeconfig] authenticates as a ServiceAccount with exactly the rights that
// deploy/rbac gives it. A refused request fails the test, even if the client under test
// only logs it, unless the test announced it ([Server.ExpectDenied]).
// [Server.Proxy] sits between a client and the server and can simulate a server that is
// absent, silent or slow, or that comes back.
//
// Programs that are not tests, such as benchmarks, use [Open], [Server.WriteKubeconfig] and
// [Server.Forward].
//
// There are no controllers: nothing creates a namespace's ServiceAccount, binds pods
// or removes the pods of a deleted node.
//
// "make kube" builds kube-apiserver once and also fetches etcd. A test that does not find
// them is skipped with a hint to that command, and fails if CNI_TEST_REQUIRE contains
// "root" or "kube".
package kubeapi
