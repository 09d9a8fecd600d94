package node

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cnictl/daemon/api/netnames"
	"cnictl/doctor/evidence"
	"cnictl/doctor/evidence/file"
	"cnictl/testenv"
)

var now = time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)

// hostFiles are the files of a node that any source reads.
var hostFiles = map[string]string{
	"etc/cni/net.d/10-aws.conflist":                  `{"name":"aws-cni","plugins":[{"type":"aws-cni"},{"type":"portmap"}]}`,
	"etc/cni/net.d/20-other.conf":                    `{"type":`,
	"etc/cni/net.d/notes.txt":                        `not a configuration`,
	"opt/cni/bin/aws-cni":                            "#!/bin/sh\n[ -z \"$CNI_COMMAND\" ] && echo 'AWS CNI v1.23.1' >&2\n",
	"opt/cni/bin/egress-cni":                         "\x7fELF",
	"opt/cni/bin/loopback":                           "\x7fELF",
	"proc/10/root/app/aws-cni":                       "#!/bin/sh\n",
	"proc/10/root/app/egress-cni":                    "\x7fELF",
	"proc/thread-self/mountinfo":                     "22 1 0:21 / /sys/fs/bpf-old rw - tmpfs none rw\n30 22 0:26 / /sys/fs/bpf rw,nosuid shared:9 - bpf bpf rw,mode=700\n",
	"etc/kubernetes/kubelet/config.json":             `{"maxPods":29}`,
	"etc/kubernetes/kubelet/config.json.d/00-a.conf": `{"maxPods":58}`,
	"etc/kubernetes/kubelet/config.json.d/40-b.conf": `{"evictionHard":{}}`,
	"etc/systemd/networkd.conf":                      "[Network]\nManageForeignRoutes=no\n",
	"usr/lib/systemd/libsystemd-shared-252.so":       "",
	"usr/lib/systemd/network/99-default.link":        "[Match]\nOriginalName=*\n[Link]\nMACAddressPolicy=persistent\n",
	"usr/lib/systemd/network/99-default.link.d/x":    "[Link]\nMACAddressPolicy=random\n",
	"etc/systemd/network/99-default.link.d/a.conf":   "[Link]\nMACAddressPolicy=none\n",
	"usr/bin/dockerd":                                "",
	"sys/fs/selinux/enforce":                         "1\n",
	"sys/fs/cgroup/kubepods/cpu.stat":                "nr_periods 9\nnr_throttled 4\n",
	"lib/modules/6.1.0/modules.dep":                  "kernel/net/netfilter/xt_comment.ko.xz: kernel/net/netfilter/x_tables.ko.xz\nkernel/net/netfilter/xt_mark.ko:\nkernel/net/nf_tables.ko:\n",
	"lib/modules/6.1.0/modules.builtin":              "kernel/net/netfilter/nf-conntrack.ko\nkernel/drivers/net/veth.ko\n",
	"proc/sys/kernel/osrelease":                      "6.1.0\n",
	"proc/sys/net/ipv4/ip_forward":                   "1\n",
	"proc/sys/net/netfilter/nf_conntrack_count":      "1000\n",
	"proc/sys/net/netfilter/nf_conntrack_max":        "262144\n",
	"proc/stat":                             "cpu  1 2\ncpu0 1 2\ncpu1 1 2\nintr 5\n",
	"proc/loadavg":                          "0.52 0.40 0.30 1/200 4242\n",
	"proc/meminfo":                          "MemTotal: 8000000 kB\nMemAvailable:    4194304 kB\n",
	"proc/10/cmdline":                       "/app/aws-k8s-agent\x00",
	"proc/10/comm":                          "aws-k8s-agent\n",
	"proc/10/environ":                       "WARM_ENI_TARGET=1\x00AWS_SECRET_ACCESS_KEY=hidden\x00HTTPS_PROXY=http://me:hidden@proxy:3128\x00",
	"proc/10/cgroup":                        "0::/kubepods\n",
	"proc/11/cmdline":                       "/controller\x00--enable-network-policy=true\x00",
	"proc/11/environ":                       "MY_NODE_NAME=node-1\x00",
	"proc/12/cmdline":                       "/some/other/controller\x00--leader-elect\x00",
	"proc/13/cmdline":                       "",
	"proc/14/cmdline":                       "/usr/bin/kubelet\x00--config\x00/etc/kubernetes/kubelet/config.json\x00--v=2\x00",
	"proc/thread-self/net/tcp":              "  sl  local_address rem_address   st\n   0: " + hexAddress("127.0.0.1") + ":F0EF 00000000:0000 0A 0:0 0:0 0 0 0 77 1 0\n   1: " + hexAddress("10.0.0.1") + ":0016 0A000002:1234 01 0:0 0:0 0 0 0 78 1 0\n",
	"proc/thread-self/net/tcp6":             "  sl  local_address\n   0: 00000000000000000000000000000000:F0EE 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 79 1 0\n",
	"proc/thread-self/net/unix":             "Num RefCount Protocol Flags Type St Inode Path\n0: 00000002 00000000 00010000 0001 01 80 /run/aws-node/ipamd.sock.new\n0: 00000002 00000000 00010000 0001 01 81 /run/systemd/private\n0: 00000003 00000000 00000000 0001 03 82 /run/aws-node/ipamd.sock\n",
	"var/run/aws-node/ipam.json":            `{"version":"vpc-cni-ipam/1","allocations":[{"networkName":"aws-cni","containerID":"` + strings.Repeat("ab", 32) + `","ifName":"eth0","ipv4":"10.0.0.9","allocationTimestamp":1,"metadata":{"k8sPodNamespace":"default","k8sPodName":"web"}}]}`,
	"var/run/aws-node/ipam.json.tmp123":     "",
	"var/run/aws-node/ipam-nic-1.json":      `{"version":"vpc-cni-ipam/1","allocations":[{"networkName":"aws-cni","containerID":"x","ifName":"eth1","ipv4":"10.0.1.9","metadata":{"k8sPodNamespace":"default","k8sPodName":"web","interfacesCount":2}}]}`,
	"var/run/aws-node/ipam-nic-1.json.tmp7": "",
	"var/run/aws-node/ipam-nic-01.json":     "{", // not a file of the daemon
	"var/log/aws-routed-eni/ipamd.log":      `{"level":"error","ts":"2026-11-23T09:59:30.000Z","caller":"a.go:1","msg":"Failed to check ` + strings.Repeat("cd", 32) + `"}` + "\n",
	"var/log/aws-routed-eni/ipamd-2026-11-23T09-00-00.000.log":     `{"level":"info","ts":"2026-11-23T09:50:00.000Z","msg":"rotated"}` + "\n",
	"var/log/aws-routed-eni/plugin.log":                            "garbage\n",
	"var/log/pods/kube-system_aws-node-a_1/aws-node/0.log":         "2026-11-23T09:00:00.000000000Z stdout F first run\n",
	"var/log/pods/kube-system_aws-node-a_1/aws-node/1.log":         "2026-11-23T09:30:00.000000000Z stdout F second run\n",
	"var/log/pods/kube-system_aws-node-a_1/aws-vpc-cni-init/0.log": "2026-11-23T08:59:00.000000000Z stderr F copied\n",
	"var/log/pods/kube-system_coredns-a_1/coredns/0.log":           "2026-11-23T09:00:00.000000000Z stdout F not ours\n",
	"var/log/audit/audit.log":                                      "type=AVC msg=audit(1): avc:  denied  { write } for comm=\"aws-k8s-agent\"\ntype=AVC msg=audit(2): avc:  denied  { read } for comm=\"sshd\"\n",
	"var/run/netns/no-namespace":                                   "",
}

// hexAddress formats an IPv4 address as the kernel prints it on this machine.
func hexAddress(dotted string) string {
	var b [4]byte
	fmt.Sscanf(dotted, "%d.%d.%d.%d", &b[0], &b[1], &b[2], &b[3])
	return fmt.Sprintf("%08X", binary.NativeEndian.Uint32(b[:]))
}

// hostRoot creates a directory with the files, at the paths that below returns.
func hostRoot(t *testing.T, below func(name string) string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range hostFiles {
		path := filepath.Join(root, below(name))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o755))
	}
	for socket, fd := range map[string]string{"socket:[77]": "3", "socket:[79]": "4", "socket:[80]": "5", "/dev/null": "0"} {
		must(t, os.MkdirAll(filepath.Join(root, "proc/10/fd"), 0o755))
		must(t, os.Symlink(socket, filepath.Join(root, "proc/10/fd", fd)))
	}
	old := now.Add(-time.Hour)
	must(t, os.Chtimes(filepath.Join(root, below("var/log/aws-routed-eni/ipamd-2026-11-23T09-00-00.000.log")), old, old))
	for _, name := range []string{"opt/cni/bin/aws-cni", "opt/cni/bin/egress-cni", "opt/cni/bin/loopback", "var/run/aws-node/ipam.json", "var/run/aws-node/ipam-nic-1.json"} {
		must(t, os.Chtimes(filepath.Join(root, below(name)), now, now))
	}
	return root
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// options returns options that read a root, without a daemon or metadata service.
func options(t *testing.T, root string) Options {
	t.Helper()
	return Options{
		Root: root, Address: "unix:/nowhere/i.sock", Metadata: "http://127.0.0.1:1", Now: func() time.Time { return now },
		Timeout: testenv.Left(t),
	}
}

func asIs(name string) string { return name }

func TestRead_Files(t *testing.T) {
	t.Parallel()
	r := Read(t.Context(), options(t, hostRoot(t, asIs)))
	same := func(source string, missing string, want, got any) {
		t.Helper()
		if d := cmp.Diff(want, got, cmpopts.EquateComparable(evidence.Allocation{}.Address)); d != "" || missing != "" {
			t.Errorf("%s: %s (-want +got):\n%s", source, missing, d)
		}
	}
	same("host.pkg", r.Packages.Missing, evidence.Packages{
		Systemd: new(252), Packages: []string{"docker"}, LinkPolicy: "none", ForeignRoutes: new(false), SELinux: "enforcing",
		Modules: []string{"8021q", "xt_addrtype", "xt_connmark", "xt_nat"}, BPFFS: new(true),
	}, r.Packages.Content)
	same("host.cni", r.CNI.Missing, evidence.CNI{
		Conf: []evidence.CNIConf{{File: "10-aws.conflist", Types: []string{"aws-cni", "portmap"}, Valid: true}, {File: "20-other.conf", Types: []string{}}},
		Bin: []evidence.CNIPlugin{
			{Name: "aws-cni", ModifiedAt: now, Size: new(len(hostFiles["opt/cni/bin/aws-cni"])), Version: new("v1.23.1"), OfImage: new(false)},
			{Name: "egress-cni", ModifiedAt: now, Size: new(4), OfImage: new(true)},
			{Name: "loopback", ModifiedAt: now, Size: new(4)},
		},
	}, r.CNI.Content)
	same("host.env", r.ContainerEnv.Missing, map[string]map[string]string{
		"aws-node":          {"WARM_ENI_TARGET": "1", "AWS_SECRET_ACCESS_KEY": "<secret>", "HTTPS_PROXY": "http://<secret>@proxy:3128"},
		"aws-eks-nodeagent": {"MY_NODE_NAME": "node-1"},
	}, r.ContainerEnv.Content)
	same("host.kubelet", r.Kubelet.Missing, evidence.Kubelet{MaxPods: new(58)}, r.Kubelet.Content)
	res := r.Resources.Content
	if len(res.Disks) == 0 || res.Disks[0].Path != "/" || res.Disks[0].UsedPercent == nil {
		t.Errorf("disks: %+v", res.Disks)
	}
	res.Disks = nil
	same("host.res", r.Resources.Missing, evidence.Resources{
		CPUs: new(2), Load1: new(0.52), MemoryFreeMiB: new(4096), Throttled: []string{},
		Denials: []string{`type=AVC msg=audit(1): avc:  denied  { write } for comm="aws-k8s-agent"`},
	}, res)
	same("host.listen", r.Listeners.Missing, []evidence.Listener{
		{Address: "/var/run/aws-node/ipamd.sock", Process: "aws-k8s-agent"}, {Address: "127.0.0.1:61679", Process: "aws-k8s-agent"}, {Address: "[::]:61678", Process: "aws-k8s-agent"},
	}, r.Listeners.Content)
	same("host.run", r.RunFiles.Missing, []string{"ipam-nic-01.json", "ipam-nic-1.json", "ipam-nic-1.json.tmp7", "ipam.json", "ipam.json.tmp123"}, r.RunFiles.Content)
	c := r.Checkpoint.Content
	if c.Path != netnames.CheckpointFile || c.Error != nil || *c.Bytes != len(hostFiles["var/run/aws-node/ipam.json"])+len(hostFiles["var/run/aws-node/ipam-nic-1.json"]) ||
		len(c.Allocations) != 2 || c.Allocations[0].Pod != "default/web" || c.Allocations[1].Address.String() != "10.0.1.9" || *c.Temporary != 2 || c.ModifiedAt != now {
		t.Errorf("ckpt: %+v, %s", c, r.Checkpoint.Missing)
	}
	same("kern.ct", "", []*int{new(1000), new(262144)}, []*int{r.Conntrack.Content.Count, r.Conntrack.Content.Max})
	same("kern.sysctl", r.Sysctls.Missing, map[string]string{"net.ipv4.ip_forward": "1"}, r.Sysctls.Content)

	messages := func(l evidence.Log) (out []string) {
		for _, line := range l.Lines {
			out = append(out, line.Msg)
		}
		return out
	}
	same("log.ipamd", r.LogIPAMD.Missing, []string{"rotated", "Failed to check <sandbox-id>"}, messages(r.LogIPAMD.Content))
	same("log.plugin", r.LogPlugin.Missing, []string{"garbage"}, messages(r.LogPlugin.Content))
	containers := r.LogAWSNode.Content
	same("log.awsnode", r.LogAWSNode.Missing, []string{"second run"}, messages(containers["aws-node"]))
	same("log.awsnode", r.LogAWSNode.Missing, []string{"copied"}, messages(containers["aws-vpc-cni-init"]))
	if previous := containers["aws-node"].Previous; len(containers) != 2 || previous == nil || previous.Lines[0].Msg != "first run" {
		t.Errorf("log.awsnode: %+v", containers)
	}
	if r.Neighbours.Missing != errNoNamespace.Error() {
		t.Errorf("kern.neigh: %+v", r.Neighbours)
	}
	if r.LogAgent.Missing != evidence.MissingAbsent || r.ENIs.Missing != evidence.MissingAbsent || r.IMDS.Content.Token != "refused" || r.Node.Missing != evidence.MissingNotAsked {
		t.Errorf("missing: log.np %q, intro.enis %q, k8s.node %q; imds %q", r.LogAgent.Missing, r.ENIs.Missing, r.Node.Missing, r.IMDS.Content.Token)
	}
}

// TestRead_Container: in aws-node, the mounted directories of the host are below /host, and the
// rest of the host is invisible.
func TestRead_Container(t *testing.T) {
	t.Parallel()
	mounted := func(name string) string {
		for _, dir := range []string{"etc/cni/net.d/", "opt/cni/bin/", "var/log/aws-routed-eni/"} {
			if strings.HasPrefix(name, dir) {
				return "host/" + name
			}
		}
		return name
	}
	r := Read(t.Context(), options(t, hostRoot(t, mounted)))
	if len(r.CNI.Content.Conf) != 2 || len(r.CNI.Content.Bin) != 3 || r.CNI.Content.Bin[1].OfImage == nil || !*r.CNI.Content.Bin[1].OfImage || len(r.LogIPAMD.Content.Lines) != 2 || len(r.RunFiles.Content) != 5 {
		t.Errorf("read %+v, %+v, %v", r.CNI, r.LogIPAMD, r.RunFiles)
	}
	for source, missing := range map[string]string{
		"host.pkg": r.Packages.Missing, "host.kubelet": r.Kubelet.Missing, "log.kubelet": r.LogKubelet.Missing, "log.awsnode": r.LogAWSNode.Missing,
	} {
		if missing != errContainer.Error() {
			t.Errorf("%s is missing because of %q", source, missing)
		}
	}
}

// TestRead_Hostile: whatever replaces the files of a node, reading ends in time,
// and the result can be saved and loaded.
func TestRead_Hostile(t *testing.T) {
	t.Parallel()
	for kind, put := range map[string]func(path string) error{
		"absent":    func(string) error { return nil },
		"FIFO":      func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"directory": func(path string) error { return os.Mkdir(path, 0o755) },
		"loop":      func(path string) error { return os.Symlink(path, path) },
		"empty":     func(path string) error { return os.WriteFile(path, nil, 0o644) },
		"garbage": func(path string) error {
			return os.WriteFile(path, []byte("\x00\xff{[\"\n: 0A zz\x1b[2J\n\n\n=\n[Match]\n-1 18446744073709551616\n"), 0o755)
		},
		"1 GiB": func(path string) error {
			if err := os.WriteFile(path, []byte("{\n"), 0o644); err != nil {
				return err
			}
			return os.Truncate(path, 1<<30)
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			root := hostRoot(t, asIs)
			for name := range hostFiles {
				path := filepath.Join(root, name)
				must(t, os.Remove(path))
				must(t, put(path))
			}
			r := Read(t.Context(), options(t, root))
			for source, missing := range map[string]string{"log.ipamd": r.LogIPAMD.Missing, "log.awsnode": r.LogAWSNode.Missing, "host.cni": r.CNI.Missing, "host.pkg": r.Packages.Missing, "host.listen": r.Listeners.Missing, "ckpt": r.Checkpoint.Missing} {
				if strings.Contains(missing, "crashed") {
					t.Errorf("%s: %s", source, missing)
				}
			}
			data, err := file.Save(&evidence.Evidence{At: r.At, Mode: evidence.ModeNode, Nodes: []evidence.Node{{Name: "node-1", First: r}}})
			if err == nil {
				_, err = file.Load(data)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestGrown(t *testing.T) {
	t.Parallel()
	got := grown(map[string]int{"kubelet": 4, "aws-k8s-agent": 7, "gone": 1}, map[string]int{"kubelet": 4, "aws-k8s-agent": 9, "new": 3})
	if d := cmp.Diff([]string{"aws-k8s-agent"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	got := unitsOf("Id=kubelet.service\nLoadState=loaded\nActiveState=active\n\nId=ufw.service\nLoadState=not-found\nActiveState=inactive\n\nId=nm-cloud-setup.timer\nLoadState=loaded\nActiveState=failed\n")
	if d := cmp.Diff(map[string]string{"kubelet.service": "active", "nm-cloud-setup.timer": "failed"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
