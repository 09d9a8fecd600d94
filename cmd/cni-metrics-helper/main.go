// Command cni-metrics-helper adds up the metrics of every node's ipamd, and publishes the
// figures of the cluster to CloudWatch and for Prometheus.
//
// Settings come from flags and the environment, which takes precedence
// (docs/metrics-helper.md).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"cnictl/cmd/cni-metrics-helper/internal/jsonlog"
	"cnictl/cmd/cni-metrics-helper/internal/loop"
	"cnictl/cmd/cni-metrics-helper/internal/publish"
	"cnictl/cmd/cni-metrics-helper/internal/scrape"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/config"
)

// version is set by the linker.
var version = ""

const usage = `cni-metrics-helper sums the metrics of all nodes' ipamd and publishes the totals.

Usage: cni-metrics-helper [flags]

  --cloudwatch[=true|false]   publish to CloudWatch (default true; USE_CLOUDWATCH takes precedence)
  --prometheus[=true|false]   serve :61681/metrics (default false; USE_PROMETHEUS takes precedence)
  "--prometheus metrics"      the same, under upstream's flag name
  --version, --help

Other settings come from environment variables; docs/metrics-helper.md lists them.
`

// address is where Prometheus scrapes the sums.
const address = ":61681"

// startTimeout bounds the AWS requests before the first poll.
const startTimeout = time.Minute

func main() {
	os.Exit(run(os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

func run(args []string, getenv func(string) (string, bool), stdout, stderr io.Writer) int {
	flags, err := parseFlags(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "cni-metrics-helper: %v\n%s", err, usage)
		return 2
	case flags.version:
		fmt.Fprintln(stdout, "cni-metrics-helper "+version)
		return 0
	}
	s, problems := settings(getenv, flags)
	log := jsonlog.New(stdout, s.LogLevel)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := start(ctx, log, s, problems); err != nil && ctx.Err() == nil {
		log.Log(ctx, jsonlog.LevelFatal, "Unable to continue", logline.KeyError, err)
		return 1
	}
	log.InfoContext(ctx, "Ended")
	return 0
}

// start builds what the settings require and runs it.
func start(ctx context.Context, log *slog.Logger, s config.Config, problems []config.Problem) error {
	for _, p := range problems {
		if p.Fatal {
			return errors.New(p.String())
		}
		log.WarnContext(ctx, "A setting was not used as written", logline.KeySetting, p.Variable, logline.KeyDetail, p.String())
	}
	log.InfoContext(ctx, "Starting CNIMetricsHelper", logline.KeyVersion, version,
		logline.KeyDetail, fmt.Sprintf("every %s; CloudWatch: %v, Prometheus: %v", s.MetricInterval, s.CloudWatch, s.Prometheus))
	nodes, err := scrape.New(scrape.Options{Kubeconfig: s.Kubeconfig, Endpoint: s.ClusterEndpoint, UserAgent: "cni-metrics-helper/" + version})
	if err != nil {
		return fmt.Errorf("prepare to read the nodes: %w", err)
	}
	d := loop.Deps{Interval: s.MetricInterval, Nodes: nodes, Exposition: publish.NewExposition(reasons()), Log: log}
	if s.CloudWatch {
		d.Queue = new(publish.Queue)
		if d.CloudWatch, err = cloudWatch(ctx, log, s, d.Queue); err != nil {
			return fmt.Errorf("prepare CloudWatch: %w", err)
		}
	}
	if s.Prometheus {
		if d.Listener, err = net.Listen("tcp", address); err != nil {
			return fmt.Errorf("serve metrics: %w", err)
		}
		log.InfoContext(ctx, "Serving metrics", logline.KeyAddr, d.Listener.Addr())
	}
	return loop.Run(ctx, d)
}

// cloudWatch finds out the region and the name of the cluster.
func cloudWatch(ctx context.Context, log *slog.Logger, s config.Config, q *publish.Queue) (*publish.CloudWatch, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cfg, err := publish.LoadAWS(ctx, s.HTTPTimeout)
	if err != nil {
		return nil, err
	}
	if cfg.Region, err = publish.Region(ctx, cfg, s.Region); err != nil {
		return nil, err
	}
	cluster, source := s.ClusterID, "AWS_CLUSTER_ID"
	if cluster == "" {
		cluster, source, err = publish.Cluster(ctx, cfg, s.EC2Endpoint)
	} else if err = publish.CheckCluster(cluster); err != nil {
		err = fmt.Errorf("AWS_CLUSTER_ID: %w", err)
	}
	if err != nil {
		return nil, err
	}
	log.InfoContext(ctx, "Publishing to CloudWatch", logline.KeyCluster, cluster, logline.KeySource, source, logline.KeyRegion, cfg.Region)
	return publish.NewCloudWatch(cfg, cluster, version, q), nil
}

func reasons() []string {
	var out []string
	for _, r := range scrape.Reasons() {
		out = append(out, string(r))
	}
	return out
}
