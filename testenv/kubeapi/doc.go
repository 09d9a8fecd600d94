// Package kubeapi gives tests a real Kubernetes API: etcd and kube-apiserver as child
// processes, with the definitions and roles of deploy/ installed and RBAC on.
//
// [Start] gives a test a server of its own, [Shared] the one of the test binary, whose
// TestMain is then [Main]. Objects in a shared server are kept apart by names: see
// [Server.Name]. A server is ready two or three seconds after it was started and ends
// with its test (binary), also when that is killed. etcd listens on a unix socket and
// kube-apiserver on a loopback port that is reserved before it starts, so any number
// of servers run in parallel.
//
// [Server.Kubeconfig] names a ServiceAccount with exactly the rights that deploy/rbac
// gives it. A request that is refused fails the test, even if the client under test
// only logs it, unless the test said that it expects it ([Server.ExpectDenied]).
// [Server.Proxy] stands between a client and the server and lets it be absent, silent,
// slow, gone and back.
//
// A program that is no test, such as a bench, uses [Open], [Server.WriteKubeconfig] and
// [Server.Forward].
//
// There are no controllers: nothing makes the ServiceAccount of a namespace, binds a
// pod or takes away the pods of a deleted node.
//
// The program kube-apiserver is built once by "make kube", which also fetches etcd. A
// test that finds none is skipped with that command, and fails where CNI_TEST_REQUIRE
// has "root" or "kube".
package kubeapi
