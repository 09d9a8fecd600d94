package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"cnictl/daemon/fleet/document"
	"cnictl/testenv/cmd/internal/figure"
)

// Limits and sizes of the doctor phases.
const (
	scaleNodes    = 1000
	deadNodes     = 5   // dead (0.5%) of scaleNodes
	scaleLimit    = 60  // seconds for scaleNodes
	archiveBytes  = 1e9 // of logs
	archiveLimit  = 20  // seconds
	archiveMemory = 100 // MB
	soakNodes     = 40
	upstreamShare = "40%"
)

// planted are the shares of nodes whose EC2 calls fail, and the finding expected for each.
var planted = []struct {
	flag, share, code string
	nodes             int
}{{"--full-subnet", "2%", "ip/subnet-exhausted", 20}, {"--throttled", "1.2%", "aws/throttled", 12}, {"--unauthorized", "0.8%", "aws/iam", 8}}

// doctor runs cnictl doctor and reads its report.
func (s *session) doctor(ctx context.Context, kubeconfig string, args ...string) (r document.DoctorReport, stderr []byte, wall, cpu time.Duration, err error) {
	cmd, out, stderr, wall, err := s.cnictl(ctx, env(kubeconfig, s.dir), append([]string{"doctor", "-o", "json", "--exit-zero"}, args...)...)
	if err != nil {
		return r, nil, 0, 0, err
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return r, nil, 0, 0, fmt.Errorf("read the report: %w", err)
	}
	return r, stderr, wall, spent(cmd), nil
}

// nodesByCode counts the nodes per code, for findings above info.
func nodesByCode(r document.DoctorReport) map[string]int {
	found := map[string]map[string]bool{}
	for _, f := range slices.Concat(r.Findings, r.Explained) {
		if f.Severity == string(document.SeverityInfo) {
			continue
		}
		if found[f.Code] == nil {
			found[f.Code] = map[string]bool{}
		}
		for _, n := range f.Nodes {
			found[f.Code][n] = true
		}
	}
	out := map[string]int{}
	for code, nodes := range found {
		out[code] = len(nodes)
	}
	return out
}

var requestsText = regexp.MustCompile(`(\d+) requests to the API server`)

// scale examines a large fleet over a slow connection.
func (s *session) scale(ctx context.Context) (err error) {
	args := []string{"--latency", latency.String(), "--dead", dead, "--upstream", upstreamShare, "--churn", "-1s", "--sound"}
	for _, p := range planted {
		args = append(args, p.flag, p.share)
	}
	f, err := s.fleet(ctx, scaleNodes, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	r, stderr, wall, cpu, err := s.doctor(ctx, f.kubeconfig, "--v=1")
	if err != nil {
		return err
	}
	requests := requestsText.FindSubmatch(stderr)
	if requests == nil {
		return fmt.Errorf("no count of requests in %q", stderr)
	}
	count, _ := strconv.ParseFloat(string(requests[1]), 64) // it is all digits
	s.add(fmt.Sprintf("cnictl doctor, %d nodes, %s a stream, %s dead", scaleNodes, latency, dead), "s", wall.Seconds()).must(scaleLimit)
	s.add("the same, CPU", "s", cpu.Seconds())
	s.add("the same, requests to the API server", "", count)
	unread := 0
	for _, m := range r.NotChecked {
		if m.Source == "intro.enis" {
			unread += len(m.Nodes)
		}
	}
	s.add("the same, nodes that never answer", "", float64(unread))
	if unread != deadNodes {
		err = fmt.Errorf("%d nodes did not answer, %d are dead", unread, deadNodes)
	}
	got := nodesByCode(r)
	for _, p := range planted {
		s.add(fmt.Sprintf("the same, nodes with %s (%d planted)", p.code, p.nodes), "", float64(got[p.code]))
		if got[p.code] != p.nodes {
			err = errors.Join(err, fmt.Errorf("%s is found on %d nodes, planted on %d", p.code, got[p.code], p.nodes))
		}
		delete(got, p.code)
	}
	if len(got) > 0 {
		err = errors.Join(err, fmt.Errorf("found besides: %v", got))
	}
	return err
}

// sound repeatedly examines a healthy fleet.
func (s *session) sound(ctx context.Context) (err error) {
	f, err := s.fleet(ctx, soakNodes, "--upstream", upstreamShare, "--churn", "10s", "--sound")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	var walls []time.Duration
	findings := 0
	for end := time.Now().Add(s.lasts); len(walls) == 0 || time.Now().Before(end); {
		r, _, wall, _, err := s.doctor(ctx, f.kubeconfig, "--interval", "2s")
		if err != nil {
			return err
		}
		walls = append(walls, wall)
		for _, found := range r.Findings {
			if found.Severity != string(document.SeverityInfo) {
				findings++
				s.say("run %d: %s on %v: %s: %+v", len(walls), found.Code, found.Nodes, found.Summary, found.Evidence)
			}
		}
	}
	s.add(fmt.Sprintf("cnictl doctor on %d sound nodes whose pods come and go, runs", soakNodes), "", float64(len(walls)))
	s.add("the same, findings above info", "", float64(findings)).must(0)
	s.add("the same, median", "s", figure.Quantile(walls, 0.5).Seconds())
	s.add("the same, longest", "s", figure.Quantile(walls, 1).Seconds())
	return nil
}

// archive examines an eks-log-collector archive with a very long log.
func (s *session) archive(ctx context.Context) error {
	name := filepath.Join(s.dir, "eks_i-0fa4e000000000001_2026-11-21_0300-UTC_0.7.9.tar.gz")
	size, err := writeArchive(name)
	if err != nil {
		return fmt.Errorf("make an archive: %w", err)
	}
	cmd, _, stderr, wall, err := s.run(ctx, s.path("peak"), env("", s.dir), s.path("cnictl"), "doctor", "-o", "json", "--exit-zero", "--bundle", name)
	if err != nil {
		return err
	}
	_, after, _ := bytes.Cut(stderr, []byte("peak_kib="))
	kib, err := strconv.ParseFloat(string(bytes.TrimSpace(after)), 64)
	if err != nil {
		return fmt.Errorf("read the memory of peak: %w", err)
	}
	s.add(fmt.Sprintf("cnictl doctor --bundle, %.1f GB of logs in an archive of %.0f MB", archiveBytes/1e9, size/1e6), "s", wall.Seconds()).must(archiveLimit)
	s.add("the same, CPU", "s", spent(cmd).Seconds()).aim(12)
	s.add("the same, memory", "MB", kib*1024/1e6).must(archiveMemory)
	return os.Remove(name)
}
