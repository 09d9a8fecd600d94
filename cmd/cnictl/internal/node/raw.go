package node

import (
	"context"
	"strings"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/tui/show"
)

// Raw prints a node's response to a path: unchanged to a file or a pipe, escaped on a
// terminal.
func Raw(ctx context.Context, f *cli.Factory, opts *Options) error {
	if !strings.HasPrefix(opts.Path, "/") || strings.ContainsAny(opts.Path, " \t\r\n\x00#") {
		return &cli.Error{Code: cli.ExitUsage, What: opts.Path + " is not a path", Why: "it must start with / and contain no spaces"}
	}
	var answer client.Raw
	name, err := ask(ctx, f, opts, opts.Path, func(ctx context.Context, c *client.Client) (err error) {
		answer, err = c.Raw(ctx, opts.Path)
		return err
	})
	if err != nil {
		return err
	}
	path, _, _ := strings.Cut(opts.Path, "?")
	if known := introspect.PathsOf(answer.Body); known != nil && path != "/" {
		return &cli.Error{Code: cli.ExitNotFound, What: "node " + name + " has no path " + path,
			Why: "its paths are " + strings.Join(known, ", ")}
	}
	body := string(answer.Body)
	if f.Streams.OutTTY {
		if body = safeText(body); !strings.HasSuffix(body, "\n") {
			body += "\n"
		}
	}
	if err := write(f, body); err != nil {
		return err
	}
	if answer.Status/100 != 2 {
		f.Warn("node %s answered %s with HTTP status %d", name, opts.Path, answer.Status)
		return cli.Exit(statusExit(answer.Status))
	}
	return nil
}

// statusExit returns the exit code for an HTTP status that is not a success.
func statusExit(status int) int {
	if status == 404 {
		return cli.ExitNotFound
	}
	return cli.ExitUnreachable
}

// safeText makes multi-line text safe to print.
func safeText(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = show.Printable(line)
	}
	return strings.Join(lines, "\n")
}
