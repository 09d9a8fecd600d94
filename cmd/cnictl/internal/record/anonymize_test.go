package record

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/record"
	"cnictl/daemon/fleet/watch"
	"cnictl/doctor/evidence/bundle"
)

// recorded writes a recording of two nodes and returns it and its text. Each name in capitals is
// replaced.
func recorded(t *testing.T, names *strings.Replacer, anonymizer record.Anonymizer) (file []byte, text string) {
	t.Helper()
	at := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	w, err := record.NewWriter(&out, record.Header{StartedAt: at})
	if err != nil {
		t.Fatal(err)
	}
	if anonymizer != nil {
		w.Anonymize(anonymizer)
	}
	pod := introspect.PodRef{Namespace: names.Replace("NAMESPACE"), Name: names.Replace("POD")}
	for i, name := range []string{names.Replace("NODE"), names.Replace("OTHER")} {
		address := netip.AddrFrom4([4]byte{10, 20, 7, byte(44 + i)})
		n := document.NodeIPAM{
			APIVersion: introspect.APIVersion, Kind: document.KindNode, Metadata: document.ObjectMeta{Name: name},
			State: document.StateLive, Source: document.SourceSummary, SampledAt: &at,
			Summary: &introspect.Summary{Kind: introspect.KindSummary, Node: name, InstanceID: "i-0123456789abcdef0", InstanceType: "m5.large"},
			ENIs:    []introspect.NodeENI{{ID: "eni-0dddddddddddddddd", SubnetID: "subnet-0aaaaaaaaaaaaaaaa"}},
			Object: &document.NodeObject{
				Zone: "eu-west-1a", InstanceType: "m5.large", InternalIP: "10.20.7.4",
				Labels: map[string]string{"eks.amazonaws.com/nodegroup": names.Replace("GROUP"), "topology.kubernetes.io/zone": "eu-west-1a"},
				Daemon: &document.DaemonPod{
					Namespace: "kube-system", Name: "aws-node-x7k2p",
					Image: "602401143452.dkr.ecr.eu-west-1.amazonaws.com/amazon-k8s-cni:v1.23.1",
				},
			},
		}
		n.Summary.LastErrors = []introspect.LastError{{
			Operation: "AttachNetworkInterface", Message: names.Replace("pod NAMESPACE/POD waits for arn:aws:iam::123456789012:role/x"),
		}}
		n.ENIs[0].CIDRs = []introspect.NodeCIDR{{CIDR: netip.PrefixFrom(address, 32), Addresses: []introspect.NodeAddress{
			{Address: address, State: introspect.AddressAssigned, PodNamespace: pod.Namespace, PodName: pod.Name},
		}}}
		link := netnames.HostVeth("eni", pod.Namespace, pod.Name, 0)
		d := watch.Detail{
			Node: name,
			Failures: &introspect.NodeFailures{Items: []introspect.Failure{
				{At: at, Pod: pod, Detail: names.Replace("no address for POD_NAMESPACE")},
			}},
			Events: &introspect.NodeEvents{Epoch: "e", Items: []introspect.Event{
				{Seq: 1, At: at, Kind: introspect.EventADDFailed, Message: names.Replace(`pod "POD" in namespace "NAMESPACE"`)},
			}},
			Logs: &introspect.NodeLogs{Lines: []string{names.Replace(`{"level":"info","ts":"2026-11-21T14:00:00.000Z",` +
				`"msg":"address assigned","ip":"10.20.7.44","pod":"POD","namespace":"NAMESPACE"}`)}},
			KubeEvents: []watch.KubeEvent{{
				Namespace: pod.Namespace, Name: names.Replace("POD.17f3a"), UID: "0a1b2c3d-0000-4000-8000-000000000001", At: at, Kind: "Pod",
				Object: names.Replace("NAMESPACE/POD"), Node: name, Message: names.Replace("pod NAMESPACE/POD failed"),
			}},
			Pods: []watch.Pod{{PodRef: pod, Node: name, Phase: "Running", IPs: []string{address.String()}}},
			Pod:  &introspect.NodePod{Pod: pod, Interfaces: []introspect.PodInterface{{HostLink: link}}},
		}
		// The last begins a key frame.
		err = errors.Join(err, w.WriteSample(n, at), w.WriteDocuments(d, at), w.WriteSample(n, at.Add(10*time.Minute)))
	}
	if err := errors.Join(err, w.WriteRemoved(names.Replace("OTHER"), at.Add(11*time.Minute)), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), unzipped(t, out.Bytes())
}

func unzipped(t *testing.T, file []byte) string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAnonymize: whatever names look like, an anonymized recording has none of them, but the same
// nodes, pods and documents.
func TestAnonymize(t *testing.T) {
	t.Parallel()
	neutral := []string{"NODE", "nodezzz", "OTHER", "otherzzz", "NAMESPACE", "namespacezzz", "POD", "podzzz", "GROUP", "groupzzz"}
	_, others := recorded(t, strings.NewReplacer(neutral...), bundle.NewAnonymizer())
	addresses := regexp.MustCompile(`[0-9]+(\.[0-9]+){3}`)
	times := func(text, name string) int {
		if !strings.Contains(name, ".") { // a number of an address that was made up is no name
			text = addresses.ReplaceAllString(text, "ADDRESS")
		}
		return len(regexp.MustCompile(`(?:^|[^0-9A-Za-z])`+regexp.QuoteMeta(name)+`(?:$|[^0-9A-Za-z])`).FindAllString(text, -1))
	}
	for _, names := range [][]string{ // node, other node, namespace, pod, node group
		{"ip-10-20-7-9.eu-west-1.compute.internal", "worker-1.acme.example", "acmebank", "checkout-7d4b9c6f5-xk2lp", "blue"},
		{"us-acmebank-prod-1", "3-acmeproject", "2024-acmebank", "pg-customers-0", "10-acmebank-private"},
		{"2024", "2024-01-02", "7", "1.29.3", "v1-29-3"},
		{"eu-central-1a", "us-east-1", "ap-south-2b", "c7gn.16xlarge", "u-6tb1.metal"},
		{"search", "report", "security", "monitoring", "policy"},
		{"live", "summary", "running", "info", "timeout"},
		{"pod-1", "namespace-1", "node-1", "node-2", "nodegroup-1"},
		{"0123456789abcdef", "deadbeef", "a", "b", "c"},
	} {
		words := strings.NewReplacer("NODE", names[0], "OTHER", names[1], "NAMESPACE", names[2], "POD", names[3], "GROUP", names[4])
		file, text := recorded(t, words, bundle.NewAnonymizer())
		_, before := recorded(t, words, nil)
		secrets := []string{"10.20.7.44", "10.20.7.45", "10.20.7.4", "i-0123456789abcdef0", "123456789012", "eni-0dddddddddddddddd",
			"subnet-0aaaaaaaaaaaaaaaa", "0a1b2c3d-0000-4000-8000-000000000001", netnames.HostVeth("eni", names[2], names[3], 0)}
		for _, name := range append(secrets, names...) {
			if times(before, name) == 0 {
				t.Errorf("%q is not in the recording anyway", name)
			}
			if n := times(text, name); n > times(others, name) {
				for line := range strings.Lines(text) {
					if times(line, name) > 0 {
						t.Errorf("%q is in the recording %d times: %.400s", name, n, line)
						break
					}
				}
			}
		}
		for _, kept := range []string{"eu-west-1a", "m5.large", "aws-node", "amazon-k8s-cni:v1.23.1",
			`"state":"live"`, `"source":"summary"`, "2026-11-21T14:00:00", `\"level\":\"info\"`} {
			if !strings.Contains(text, kept) {
				t.Errorf("%v: %s is not in the recording", names, kept)
			}
		}
		p, err := record.Open(bytes.NewReader(file), record.Options{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		if info := p.Info(); info.Nodes != 2 || info.Samples != 4 {
			t.Errorf("%v: %+v", names, info)
		}
		name := p.View().Nodes[0].Metadata.Name
		d := p.Detail(t.Context(), name, watch.WantPods|watch.WantKubeEvents|watch.WantFailures|watch.WantLogs, watch.Query{})
		if len(d.Pods) != 1 || len(d.KubeEvents) != 1 || len(d.Failures.Items) != 1 || d.Failures.Items[0].Pod != d.Pods[0].PodRef ||
			d.KubeEvents[0].Object != d.Pods[0].Namespace+"/"+d.Pods[0].Name ||
			!strings.Contains(d.Logs.Lines[0], `"pod":"`+d.Pods[0].Name+`","namespace":"`+d.Pods[0].Namespace+`"`) {
			t.Errorf("%v: the documents of %s do not fit: %+v", names, name, d)
		}
		ref := d.Pods[0].PodRef
		d = p.Detail(t.Context(), name, watch.WantPod, watch.Query{Pod: ref})
		if d.Pod == nil || d.Pod.Interfaces[0].HostLink != netnames.HostVeth("eni", ref.Namespace, ref.Name, 0) {
			t.Errorf("%v: the link does not follow from the pod: %+v", names, d.Pod)
		}
	}
}

// TestRun_Anonymize: cnictl record --anonymize writes neither the node's name nor the title.
func TestRun_Anonymize(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "x.cnirec")
	if _, err := b.record("--targets=2024-acmebank="+b.address, "--anonymize", file); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := unzipped(t, raw)
	if !strings.Contains(text, `"name":"node-1"`) || strings.Contains(text, "acmebank") || strings.Contains(text, "--targets") {
		t.Errorf("%s", text)
	}
}
