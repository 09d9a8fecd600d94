package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"

	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/fleet"
	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
)

// answers collects the daemon's answers.
type answers struct {
	mu     sync.Mutex
	byPath map[string]reading.Answer
}

// ask starts requests for all documents of the daemon, each with its own time limit.
func (a *answers) ask(c *collector) {
	a.byPath = map[string]reading.Answer{}
	daemon, err := client.New(client.Options{Address: c.Address, UserAgent: "cnictl", Now: c.Now})
	for _, path := range introspect.DocumentPaths {
		if err != nil {
			a.byPath[path] = reading.Answer{Missing: err.Error()}
			continue
		}
		c.all.Go(func() {
			ctx, cancel := within(c.ctx, c.Timeout)
			defer cancel()
			raw, err := daemon.Raw(ctx, path)
			answer := reading.Answer{Status: raw.Status, Body: raw.Body}
			if err != nil {
				answer.Missing = clean(reading.Missing(fleet.ErrorOf(err)))
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			a.byPath[path] = answer
		})
	}
}

// metricsURL is where the daemon serves its metrics, on all addresses of the host.
const metricsURL = "http://127.0.0.1:61678/metrics"

func (c *collector) metrics(ctx context.Context) (evidence.Metrics, error) {
	text, status, err := get(ctx, c.http, http.MethodGet, metricsURL, nil)
	if err != nil {
		return evidence.Metrics{}, err
	}
	if status != http.StatusOK {
		return evidence.Metrics{}, fmt.Errorf("HTTP status %d", status)
	}
	return reading.Metrics(text)
}

// maxAnswer bounds the answer of an HTTP server on the node.
const maxAnswer = 8 << 20

// get makes a request and reads the answer.
func get(ctx context.Context, via *http.Client, method, url string, header http.Header) (body []byte, status int, _ error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, 0, err
	}
	if header != nil {
		req.Header = header
	}
	resp, err := via.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	progressOf(ctx).goesOn()
	body, err = io.ReadAll(io.LimitReader(inTime{ctx, resp.Body}, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = errors.New("more than 8 MiB")
	}
	return body, resp.StatusCode, err
}

const maxCheckpoint = 64 << 20

// checkpoint reads the files of assignments, one per network card, where the daemon's environment
// puts them.
func (c *collector) checkpoint(context.Context) (evidence.Checkpoint, error) {
	name := netnames.CheckpointFile
	if env, err := c.environment(); err == nil {
		name = cmp.Or(env["aws-node"]["AWS_VPC_K8S_CNI_BACKING_STORE"], name)
	}
	out, err := c.checkpointAt(name)
	if err != nil {
		return out, err
	}
	entries, err := c.list(path.Dir(name))
	if err != nil {
		return out, nil // there is no directory, as the file's error shows
	}
	out.Temporary = new(int)
	for _, e := range entries {
		file, _, temporary := strings.Cut(e.Name(), ".tmp")
		_, further := checkpoint.CardOfName(path.Base(name), file)
		switch {
		case temporary && (further || file == path.Base(name)):
			*out.Temporary++
		case further:
			card, err := c.checkpointAt(path.Join(path.Dir(name), file))
			if err != nil {
				return out, err
			}
			if card.Bytes != nil { // else it has just gone
				reading.AddCard(&out, card)
			}
		}
	}
	return out, nil
}

// checkpointAt reads the file of one network card.
func (c *collector) checkpointAt(name string) (evidence.Checkpoint, error) {
	data, err := c.readWithin(name, maxCheckpoint)
	out, err := reading.Checkpoint(name, data, err)
	if info, statErr := os.Stat(c.path(name)); err == nil && statErr == nil {
		out.ModifiedAt = info.ModTime().UTC()
	}
	return out, err
}
