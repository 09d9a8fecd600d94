package main

import (
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"cnictl/daemon/config"
)

// flags are the flags of the command line; nil if not given.
type flags struct {
	cloudwatch, prometheus *bool
	version                bool
}

// parseFlags reads the command line.
func parseFlags(args []string) (flags, error) {
	var f flags
	set := flag.NewFlagSet("cni-metrics-helper", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.BoolVar(&f.version, "version", false, "")
	choice := func(into **bool) func(string) error {
		return func(text string) error {
			b, err := strconv.ParseBool(text)
			*into = &b
			return err
		}
	}
	set.BoolFunc("cloudwatch", "", choice(&f.cloudwatch))
	set.BoolFunc("prometheus", "", choice(&f.prometheus))
	set.BoolFunc(oldPrometheus, "", choice(&f.prometheus))
	if err := set.Parse(joined(args)); err != nil {
		return flags{}, err
	}
	if set.NArg() > 0 {
		return flags{}, fmt.Errorf("unknown argument %q", set.Arg(0))
	}
	return f, nil
}

// oldPrometheus is upstream's flag, with a space in its name. It arrives as one
// argument or, from a shell, as two.
const oldPrometheus = "prometheus metrics"

// joined merges such two arguments into one.
func joined(args []string) []string {
	var out []string
	for i, a := range args {
		word, value, _ := strings.Cut(a, "=")
		if i > 0 && word == "metrics" && (args[i-1] == "--prometheus" || args[i-1] == "-prometheus") {
			out[len(out)-1] = "--" + oldPrometheus
			if value != "" {
				out[len(out)-1] += "=" + value
			}
			continue
		}
		out = append(out, a)
	}
	return out
}

// settings reads the environment; the flags apply where a switch has no usable value there.
// It returns the problems of the helper's own variables; as always, an invalid interval is
// fatal.
func settings(getenv func(string) (string, bool), f flags) (config.Config, []config.Problem) {
	c, all := config.Load(getenv)
	if f.cloudwatch != nil && !decided(getenv, "USE_CLOUDWATCH") {
		c.CloudWatch = *f.cloudwatch
	}
	if f.prometheus != nil && !decided(getenv, "USE_PROMETHEUS") {
		c.Prometheus = *f.prometheus
	}
	own := map[string]bool{}
	for _, r := range config.Table() {
		own[r.Name] = r.ReadBy(config.Helper)
	}
	var problems []config.Problem
	for _, p := range all {
		if p.Variable == "METRIC_UPDATE_INTERVAL" {
			p.Fatal, p.Effect = true, "the helper does not start"
		}
		if own[p.Variable] {
			problems = append(problems, p)
		}
	}
	return c, problems
}

// decided reports whether a variable has one of the values yes, true, no or false.
func decided(getenv func(string) (string, bool), name string) bool {
	v, _ := getenv(name)
	switch strings.ToLower(v) {
	case "yes", "true", "no", "false":
		return true
	}
	return false
}
