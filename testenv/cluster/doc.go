// Package cluster runs a Kubernetes cluster of several nodes on one machine, with our
// CNI beneath: everything above and below it is the real program.
//
// [Start] runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler, and for
// each node a simulated EC2 instance (testenv/node) on a VPC (testenv/vpc) with
// containerd, kubelet and kube-proxy. Then it installs our chart with helm, and kubelet
// runs the CNI's pods. Pods are containers under crun; the images are imported, because
// there is no registry, and those of workloads hold one program of ours each.
//
// What is not as on EC2: kubelets and the control plane are administrators, there is no
// DNS and no network policy agent (its image is AWS's), and the cgroups are the machine's.
// The process that called Start reaches every address of the VPC, as a control plane does,
// through a link with addresses of its own ([Uplink]).
//
// A node sees the machine's files, with layers of its own over /etc, /opt, /var/lib and
// /var/log: what it writes there lies in [Options].Dir and is still there after
// [Machine.Reboot], and nothing of it reaches the machine's.
//
// It needs root and a sandbox (testenv.Enter). Everything ends with the process that
// called Start, also when that is killed, except for empty cgroups and the controllers that
// the machine's got for them (version 2), which the next Start or [SweepCgroups] takes away.
package cluster
