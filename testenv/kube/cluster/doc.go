// Package cluster runs a multi-node Kubernetes cluster on one machine, with our CNI as its
// network. Everything above and below the CNI is the real program.
//
// [Start] runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler, and for
// each node a simulated EC2 instance (testenv/node) on a VPC (testenv/network/vpc) with
// containerd, kubelet and kube-proxy. Then it installs our chart with helm, and kubelet
// runs the CNI's pods. Pods are containers under crun. Images are imported, because there
// is no registry; each workload image holds one program of ours.
//
// Differences from EC2: kubelets and the control plane are administrators, there is no
// DNS and no network policy agent (its image is AWS's), and the cgroups are the machine's.
// The process that called Start reaches every address of the VPC, as a control plane does,
// through a link with its own addresses ([Uplink]).
//
// A node sees the machine's files, with its own layers over /etc, /opt, /var/lib and
// /var/log. What it writes there is stored in [Options].Dir, survives [Machine.Reboot] and
// never reaches the machine.
//
// It needs root and a sandbox (testenv.Enter). Everything ends with the process that
// called Start, even if that is killed, except for empty cgroups and the controllers that
// were enabled for them in the machine's groups (version 2). The next Start or
// [SweepCgroups] removes those.
package cluster
