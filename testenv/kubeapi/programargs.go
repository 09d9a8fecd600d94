package kubeapi

import "strconv"

// etcdSocket is a file of the server's directory, named in the only form that etcd 3.4
// takes for one: a host and a port.
const etcdSocket = "unix://etcd:0"

// etcdArgs is one member whose data is not needed after the test: nothing is synced, and
// it elects itself in a tenth of a second instead of one.
func etcdArgs() []string {
	return []string{
		"--data-dir=etcd.data",
		"--listen-client-urls=" + etcdSocket,
		"--advertise-client-urls=" + etcdSocket,
		"--listen-peer-urls=unix://peer:0",
		"--initial-advertise-peer-urls=http://localhost:0", // has no peers
		"--initial-cluster=default=http://localhost:0",
		"--heartbeat-interval=10",
		"--election-timeout=100",
		"--unsafe-no-fsync",
		"--logger=zap",
	}
}

func apiserverArgs(port int) []string {
	return []string{
		"--etcd-servers=" + etcdSocket,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1", // a test's network namespace may have no other
		"--secure-port=" + strconv.Itoa(port),
		"--permit-port-sharing", // with the reservation
		"--cert-dir=.",
		"--client-ca-file=" + authorityFile,
		"--tls-cert-file=" + serverCertFile,
		"--tls-private-key-file=" + serverKeyFile,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + tokenKeyFile,
		"--service-account-signing-key-file=" + tokenKeyFile,
		"--service-cluster-ip-range=10.96.0.0/16",
		"--authorization-mode=RBAC",
		"--anonymous-auth=false",
		"--allow-privileged",
		// It would want a ServiceAccount in each namespace, which a controller makes.
		"--disable-admission-plugins=ServiceAccount",
		// Many requests at once are what some tests are about; queues of the server
		// would only blur their times.
		"--enable-priority-and-fairness=false",
		"--endpoint-reconciler-type=none",
		"--kubelet-preferred-address-types=InternalIP", // nothing resolves nodes' names
		"--profiling=false",
		"--audit-policy-file=" + auditPolicyFile,
		"--audit-log-path=" + auditLogFile,
		"--audit-log-mode=blocking", // a refusal is written before it is answered
		"--audit-log-maxsize=2048",
	}
}
