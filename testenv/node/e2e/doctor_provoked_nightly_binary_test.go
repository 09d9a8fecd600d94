//go:build nightly

package e2e_test

import (
	"maps"
	"path/filepath"
	"strings"
	"syscall"

	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/aws/npa"
	"cnictl/testenv/node"
)

func init() {
	maps.Copy(ailments, map[string]ailment{
		"ip/prefix-fragmented": {cold: true, env: map[string]string{"ENABLE_PREFIX_DELEGATION": "true"}, begins: func(x *patient) {
			if err := x.world.Fragment(x.subnet.ID); err != nil {
				x.t.Fatal(err)
			}
			fails(x)
		}, ends: vacated},
		"ip/alloc-backoff": {cold: true, fades: true, begins: refused("InsufficientFreeAddressesInSubnet", creating...), ends: fixed},
		"ip/cooldown-saturated": {env: map[string]string{"IP_COOLDOWN_PERIOD": "600"}, begins: func(x *patient) {
			x.del(x.n, x.mustAdd(2), 2)
			x.fails()
		}},
		"ip/mode-mixed": {begins: func(x *patient) {
			x.mustAdd(2)
			x.up("ENABLE_PREFIX_DELEGATION", "true")
			x.fails()
		}},
		"ip/pd-unsupported-type": {instance: "t2.small", env: map[string]string{"ENABLE_PREFIX_DELEGATION": "true"}, begins: func(x *patient) { x.works() }, ends: restarted("ENABLE_PREFIX_DELEGATION", "false")},
		"ip/subnet-excluded": {cold: true, begins: func(x *patient) {
			if err := x.world.SetTags(map[string]string{"kubernetes.io/role/cni": "0"}, x.subnet.ID); err != nil {
				x.t.Fatal(err)
			}
			fails(x)
		}},
		"ip/v6-prefix-missing": {instance: "t3.small", cold: true, env: ipv6Env, begins: func(x *patient) {
			x.refuse("InsufficientCidrBlocks", "AssignIpv6Addresses")
			x.up()
			x.fails()
		}, ends: fixed},
		"eni/foreign-slots": {cold: true, begins: func(x *patient) {
			x.process("kubelet", "--max-pods=3")
			x.attach(map[string]string{"node.k8s.amazonaws.com/no_manage": "true"})
			x.up()
			x.mustAdd(1)
			x.fails()
		}},
		"eni/region-quota": {cold: true, begins: func(x *patient) {
			x.refuse("NetworkInterfaceLimitExceeded", "CreateNetworkInterface")
			x.up()
			x.mustAdd(1)
			x.fails()
		}, ends: fixed},
		"eni/ec2-rejected": {cold: true, begins: func(x *patient) {
			x.refuse("SecurityGroupsPerInterfaceLimitExceeded", "CreateNetworkInterface")
			x.up()
			x.mustAdd(1)
			x.fails()
		}, ends: fixed},
		"aws/credentials": {cold: true, begins: func(x *patient) {
			x.breakEC2(fakeaws.Rule{Action: "IMDS", Path: "meta-data/iam*", Fault: fakeaws.Fault{Status: 404}})
			x.dies()
		}, ends: func(x *patient) { x.endFaults(); x.up(); x.works() }},
		"aws/ec2-unreachable": {cold: true, env: map[string]string{"AWS_EC2_ENDPOINT": "http://127.0.0.1:1", "AWS_ENDPOINT_URL_EC2": "http://127.0.0.1:1"}, begins: dies},
		"aws/imds-unreachable": {cold: true, begins: func(x *patient) {
			x.breakEC2(fakeaws.Rule{Action: "IMDS", Fault: fakeaws.Fault{Status: 403}})
			x.dies()
		}, ends: func(x *patient) { x.endFaults(); x.up(); x.works() }},
		"aws/instance-type": {instance: "x9.large", options: newType, cold: true, begins: dies},
		"boot/apiserver": {cold: true, env: map[string]string{"ENABLE_POD_ENI": "true"}, begins: func(x *patient) {
			x.env["KUBECONFIG"] = filepath.Join(x.n.Dir, "kubeconfig")
			x.write(x.env["KUBECONFIG"], `{"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, 0o600)
			x.up()
		}},
		"boot/ipamd-down": {begins: func(x *patient) { x.kill(x.n, syscall.SIGKILL); x.fails() }, ends: restarted()},
		"boot/port-conflict": {cold: true, begins: func(x *patient) {
			x.background(filepath.Join(x.absBinaries(), "podprobe"), "-http", ":61678")
			x.dial(x.n, "tcp", "127.0.0.1:61678")
			x.up()
			x.works()
		}},
		"boot/backing-store": {cold: true, begins: func(x *patient) {
			x.sh(x.n, "mount -t tmpfs -o size=64k none /run/aws-node")
			x.up()
			x.works()
			x.sh(x.n, "cat /dev/zero > /run/aws-node/filler || true")
			x.fails()
		}, ends: func(x *patient) { x.sh(x.n, "rm /run/aws-node/filler"); x.works() }},
		"boot/disk-full": {begins: func(x *patient) {
			x.sh(x.n, "mount -t tmpfs -o size=64k none /var/log/aws-routed-eni; cat /dev/zero > /var/log/aws-routed-eni/filler || true")
		}, ends: sh("rm /var/log/aws-routed-eni/filler")},
		"net/link-down": {begins: func(x *patient) {
			x.mustAdd(2)
			x.kill(x.n, syscall.SIGKILL)
			x.sh(x.n, `ip link set "$(ip route show table 2 | sed -n 's/^default.* dev \([^ ]*\).*/\1/p')" down`)
		}, printed: true, stopped: true},
		"net/rpf-conntrack": {begins: func(x *patient) {
			x.mustAdd(2)
			x.sh(x.n, "ip rule add fwmark 0x80/0x80 lookup 999 priority 900")
		}, ends: sh("ip rule del priority 900")},
		"net/setup-failed": {begins: func(x *patient) {
			p, err := x.n.NewSandbox(node.PodSpec{Namespace: "default", Name: "p"})
			if err != nil {
				x.t.Fatal(err)
			}
			x.sh(x.n, "ip -n "+filepath.Base(p.Path)+" link add eth0 type veth peer name other")
			if err := x.n.Add(p); err == nil {
				x.t.Fatal("it has a network")
			}
		}},
		// kube-proxy starts after the daemon, in the other backend: restarting the daemon is the first fix.
		"net/backend-mismatch": {begins: func(x *patient) {
			x.works()
			x.sh(x.n, "iptables-legacy -t nat -N KUBE-SERVICES")
		}, ends: restarted()},
		"np/attach-failed": {cold: true, env: map[string]string{"NETWORK_POLICY_ENFORCING_MODE": "strict"}, begins: func(x *patient) {
			p := policyLab{lab: x.lab, n: x.n, socket: filepath.Join(x.n.Dir, "npa.sock")}
			x.run(x.n, "/bin/ln", "-s", p.socket, "/var/run/aws-node/npa.sock")
			p.agent().SetFault(npa.Fault{Error: "One of the policy reconcilers is not ready"})
			fails(x)
		}},
		"cap/eni-limit": {env: map[string]string{"MAX_ENI": "1"}, begins: func(x *patient) {
			x.process("kubelet", "--max-pods=3")
			x.mustAdd(1)
			x.fails()
		}, ends: restarted("MAX_ENI", "")},
		"aws/throttled": {cold: true, fades: true, env: map[string]string{"CNI_ADD_WAIT": "30s"}, begins: refused("RequestLimitExceeded", creating...), ends: fixed},
		"boot/iptables": {cold: true, begins: func(x *patient) {
			x.sh(x.n, "for p in iptables nft; do mount --bind /bin/false $(readlink -f $(command -v $p)); done")
			x.dies()
		}, ends: func(x *patient) {
			x.sh(x.n, "for p in iptables nft; do umount $(readlink -f $(command -v $p)); done")
			x.up()
			x.works()
		}},
		"net/mtu": {begins: func(x *patient) {
			x.mustAdd(2)
			x.sh(x.n, "for l in $(ip -o link show type veth | grep -o 'eni[0-9a-f]*'); do ip link set $l mtu 9100; done")
		}},
		"net/rules-flushed": {begins: func(x *patient) {
			pod := x.mustAdd(1)[0]
			a := &taken{lab: x.lab, n: x.n, path: "/usr/sbin:/usr/bin:/sbin:/bin"}
			a.whole(pod)
			rule := "to " + pod.IP.String()
			for range 3 {
				testenv.Eventually(x.t, "the rule is back", func() bool { return strings.Contains(a.sh("ip rule"), rule+" ") })
				a.sh("ip rule del priority 512 " + rule)
			}
			testenv.Eventually(x.t, "the rule is back", func() bool { return strings.Contains(a.sh("ip rule"), rule+" ") })
		}},
	})
}
