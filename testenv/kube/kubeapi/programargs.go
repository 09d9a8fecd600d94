package kubeapi

import "strconv"

// etcdSocket is a file in the server's directory, in the only form of a Unix socket that
// etcd 3.4 accepts: a host and a port.
const etcdSocket = "unix://etcd:0"

// etcdArgs configures a single member whose data is discarded after the test: nothing is
// synced, and it elects itself in a tenth of a second instead of one second.
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
		"--advertise-address=127.0.0.1", // a test's network namespace may have no other address
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
		// This plugin needs a ServiceAccount in each namespace, which a controller creates.
		"--disable-admission-plugins=ServiceAccount",
		// Some tests send many requests at once; the server's queues would only blur their
		// timings.
		"--enable-priority-and-fairness=false",
		"--endpoint-reconciler-type=none",
		"--kubelet-preferred-address-types=InternalIP", // nothing resolves node names
		"--profiling=false",
		"--audit-policy-file=" + auditPolicyFile,
		"--audit-log-path=" + auditLogFile,
		"--audit-log-mode=blocking", // a refusal is logged before it is sent
		"--audit-log-maxsize=2048",
	}
}
