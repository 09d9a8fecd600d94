package main

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"cnictl/daemon/fleet/document"
)

// planted are the shares of nodes whose EC2 calls fail, and the finding expected for each.
var planted = []struct {
	flag, share, code string
	nodes             int
}{
	{"--full-subnet", "2%", "ip/subnet-exhausted", 20}, {"--throttled", "1.2%", "aws/throttled", 12}, {"--unauthorized", "0.8%", "aws/iam", 8},
}

const upstreamShare = "40%"

// diagnose runs cnictl doctor and reads its report.
func (r *run) diagnose(kubeconfig string, args ...string) (report document.DoctorReport, e ended) {
	e = r.cnictl(env(kubeconfig, r.dir), append([]string{"doctor", "-o", "json", "--exit-zero"}, args...)...)
	check(json.Unmarshal(e.stdout, &report))
	return report, e
}

// nodesByCode counts the nodes per code, for findings above info.
func nodesByCode(report document.DoctorReport) map[string]int {
	nodes := map[string][]string{}
	for _, f := range slices.Concat(report.Findings, report.Explained) {
		if f.Severity != string(document.SeverityInfo) {
			nodes[f.Code] = append(nodes[f.Code], f.Nodes...)
		}
	}
	out := map[string]int{}
	for code, names := range nodes {
		out[code] = len(slices.Compact(slices.Sorted(slices.Values(names))))
	}
	return out
}

// doctor examines a large fleet over a slow connection.
func (r *run) doctor() {
	const nodes, deadNodes = 1000, 5
	args := []string{"--latency", latency, "--dead", dead, "--upstream", upstreamShare, "--churn", "-1s", "--sound"}
	for _, p := range planted {
		args = append(args, p.flag, p.share)
	}
	kubeconfig, _ := r.fleet(nodes, args...)
	report, e := r.diagnose(kubeconfig, "--v=1")
	requests := regexp.MustCompile(`(\d+) requests to the API server`).FindSubmatch(e.stderr)
	if requests == nil {
		check(fmt.Errorf("no count of requests in %q", e.stderr))
	}
	r.add(fmt.Sprintf("cnictl doctor, %d nodes, %s a stream, %s dead", nodes, latency, dead), "s", e.wall.Seconds()).atMost(60)
	r.add("the same, CPU", "s", e.cpu.Seconds())
	r.add("the same, requests to the API server", "", must(strconv.ParseFloat(string(requests[1]), 64)))
	unread := 0
	for _, m := range report.NotChecked {
		if m.Source == "intro.enis" {
			unread += len(m.Nodes)
		}
	}
	var err error
	exactly := func(what string, got, want int) {
		if r.add("the same, "+what, "", float64(got)); got != want {
			err = errors.Join(err, fmt.Errorf("%s: %d, want %d", what, got, want))
		}
	}
	exactly("nodes that never answer", unread, deadNodes)
	got := nodesByCode(report)
	for _, p := range planted {
		exactly(fmt.Sprintf("nodes with %s (%d planted)", p.code, p.nodes), got[p.code], p.nodes)
		delete(got, p.code)
	}
	if len(got) > 0 {
		err = errors.Join(err, fmt.Errorf("found besides: %v", got))
	}
	check(err)
}

// sound repeatedly examines a healthy fleet.
func (r *run) sound() {
	const nodes = 40
	kubeconfig, _ := r.fleet(nodes, "--upstream", upstreamShare, "--churn", "10s", "--sound")
	var walls []time.Duration
	findings := 0
	for end := time.Now().Add(r.lasting(r.lasts)); len(walls) == 0 || time.Now().Before(end); {
		report, e := r.diagnose(kubeconfig, "--interval", "2s")
		walls = append(walls, e.wall)
		for _, f := range report.Findings {
			if f.Severity != string(document.SeverityInfo) {
				findings++
				r.say("run %d: %s on %v: %s: %+v", len(walls), f.Code, f.Nodes, f.Summary, f.Evidence)
			}
		}
	}
	r.add(fmt.Sprintf("cnictl doctor on %d sound nodes whose pods come and go, runs", nodes), "", float64(len(walls)))
	r.add("the same, findings above info", "", float64(findings)).atMost(0)
	r.add("the same, median", "s", median(walls).Seconds())
	r.add("the same, longest", "s", slices.Max(walls).Seconds())
}

// archive examines an eks-log-collector archive with very long logs.
func (r *run) archive() {
	name := filepath.Join(r.dir, "eks_i-0fa4e000000000001_2026-11-21_0300-UTC_0.7.9.tar.gz")
	file := must(os.Create(name))
	defer file.Close()
	writeArchive(file, 1e9)
	size := float64(must(file.Stat()).Size()) / 1e6
	cnictl := filepath.Join(r.bin, "cnictl")
	e := r.execute(filepath.Join(r.bin, "floor"), append(env("", r.dir), peakVar+"="+cnictl+" doctor -o json --exit-zero --bundle "+name))
	r.add(fmt.Sprintf("cnictl doctor --bundle, 1.0 GB of logs in an archive of %.0f MB", size), "s", e.wall.Seconds()).atMost(20)
	r.add("the same, CPU", "s", e.cpu.Seconds()).aimAt(12)
	r.add("the same, memory", "MB", float64(readPeak(e.stderr))/1e6).atMost(100)
}

// writeArchive writes an archive as of a node with long logs. Each log has its share of the bytes,
// and may end in the middle of a line.
func writeArchive(to io.Writer, size int64) {
	zipped := must(gzip.NewWriterLevel(to, gzip.BestSpeed))
	archive := tar.NewWriter(zipped)
	end := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	for _, log := range []struct {
		name    string
		percent int64
		stamp   string
		lines   []string // of the stamp and a number
	}{
		{"./var_log/aws-routed-eni/ipamd.log", 60, "2006-01-02T15:04:05.000Z", []string{
			`{"level":"debug","ts":"%s","caller":"ipamd/ipamd.go:697","msg":"IP stats - total IPs: 28, assigned IPs: %[4]d, cooldown IPs: 0"}`,
			`{"level":"info","ts":"%s","caller":"rpc/rpc.pb.go:1016","msg":"Received AddNetwork for NS ` +
				`/var/run/netns/cni-%08[2]x-5a8e, Sandbox %064[2]x, ifname eth0"}`,
			`{"level":"debug","ts":"%s","caller":"datastore/data_store.go:714","msg":"assignPodIPv4AddressUnsafe: Assign IP ` +
				`10.0.%[3]d.%[4]d to sandbox aws-cni/%064[2]x/eth0"}`,
			`{"level":"debug","ts":"%s","caller":"ipamd/ipamd.go:1371","msg":"Reconcile and skip primary IP 10.0.%[3]d.%[4]d on ENI eni-%017[2]x"}`,
		}},
		{"./var_log/aws-routed-eni/plugin.log", 20, "2006-01-02T15:04:05.000Z", []string{
			`{"level":"info","ts":"%s","caller":"routed-eni-cni-plugin/cni.go:129","msg":"Received add response from ipamd: Success:true ` +
				`IPAddress:10.0.%[3]d.%[4]d DeviceNumber:0"}`,
		}},
		{"./kubelet/kubelet.log", 20, "Jan 02 15:04:05", []string{
			`%s ip-10-0-0-10 kubelet[3412]: I1121 %[1]s    3412 kubelet.go:2421] "SyncLoop (PLEG): event for pod" ` +
				`pod="shop/web-%08[2]x" event={"Type":"ContainerStarted"}`,
		}},
	} {
		left := size * log.percent / 100
		check(archive.WriteHeader(&tar.Header{Name: log.name, Mode: 0o644, Size: left, ModTime: end, Format: tar.FormatPAX}))
		out := bufio.NewWriterSize(archive, 1<<20)
		var line []byte
		for i := 0; left > 0; i++ {
			at := end.Add(-12*time.Hour + time.Duration(i)*10*time.Millisecond)
			line = append(fmt.Appendf(line[:0], log.lines[i%len(log.lines)], at.Format(log.stamp), i, i/256%256, i%256), '\n')
			n := min(left, int64(len(line)))
			must(out.Write(line[:n]))
			left -= n
		}
		check(out.Flush())
	}
	check(errors.Join(archive.Close(), zipped.Close()))
}
