package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/url"

	"cnictl/daemon/api/logline"
	"cnictl/daemon/kubeclient"
)

// maxItems bounds a list. The longest are the cluster's ENIConfigs, about one per
// availability zone, and a node's pods.
const maxItems = 20_000

// mirror keeps one store in step with the API server.
type mirror[T any] struct {
	c       *Client
	what    resource
	parse   func(raw []byte) (T, error)
	store   *store[T]
	changed func()
	log     *slog.Logger

	troubled bool   // a failure of the watch was logged
	unusable string // the last problem logged about an object
}

// open requests a list or a watch.
func (c *Client) open(ctx context.Context, _ string, r kubeclient.Request, q url.Values) (io.ReadCloser, error) {
	request := c.rest.Get().AbsPath(r.Kind.Path(r.Namespace)).MaxRetries(0)
	for name, values := range q {
		request.Param(name, values[0])
	}
	return request.Stream(ctx)
}

// follower returns a follower of the objects that a field selector selects; "" = all.
func (m *mirror[T]) follower(fields string) *kubeclient.Follower[json.RawMessage] {
	return &kubeclient.Follower[json.RawMessage]{
		Open: m.c.open, Request: kubeclient.Request{Kind: m.what.Kind, Selection: kubeclient.Selection{Fields: fields}},
		Limits:  kubeclient.Limits{Objects: maxItems, Within: m.c.limits.list},
		Backoff: m.c.pauses.Backoff, Cached: true, Back: m.c.reach.back,
		Begin: m.begin, Set: m.set, Unset: m.unset, Watching: m.watching, Failed: m.failed,
	}
}

// begin starts a list. Only a list read to its end is stored.
func (m *mirror[T]) begin() (add func(json.RawMessage), done func()) {
	items := map[string]T{}
	return func(raw json.RawMessage) {
			if key, item, err := m.read(raw); err == nil {
				items[key] = item
			}
		}, func() {
			if m.store.replace(items) {
				m.changed()
			}
		}
}

func (m *mirror[T]) set(raw json.RawMessage) error {
	key, item, err := m.read(raw)
	switch {
	case err != nil:
		// The stored state is outdated, and the new one is unusable.
		m.remove(key)
	case m.store.size() >= maxItems:
		return &kubeclient.TooManyError{Max: maxItems, Of: "objects"}
	case m.store.set(key, item):
		m.changed()
	}
	return nil
}

func (m *mirror[T]) unset(raw json.RawMessage) error {
	key, _, _ := m.read(raw)
	m.remove(key)
	return nil
}

func (m *mirror[T]) remove(key string) {
	if m.store.remove(key) {
		m.changed()
	}
}

// read parses an object. One that cannot be read is logged and left out.
func (m *mirror[T]) read(raw []byte) (key string, item T, err error) {
	var object struct {
		Metadata struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	if err = json.Unmarshal(raw, &object); err == nil {
		item, err = m.parse(raw)
	}
	key = objectKey(object.Metadata.Namespace, object.Metadata.Name)
	if err != nil {
		m.logUnusable(key, err)
	}
	return key, item, err
}

// logUnusable logs what is wrong with an object, unless it was the last problem logged.
func (m *mirror[T]) logUnusable(key string, err error) {
	if text := key + ": " + err.Error(); text != m.unusable {
		m.unusable = text
		m.log.Warn("invalid object from the API server", slog.String(logline.KeyValue, key), slog.Any(logline.KeyError, err))
	}
}

// watching records whether a watch is open.
func (m *mirror[T]) watching(open bool) {
	m.store.setLive(open)
	if open && m.troubled {
		m.troubled = false
		m.log.Info("watch of the API server re-established")
	}
}

// failed logs once that the API server refuses a watch. Outages are reported by
// Changes.Lost, and an expired resource version is normal.
func (m *mirror[T]) failed(f kubeclient.Failure) error {
	err := m.c.failed(fmt.Errorf("%s %s: %w", f.Verb, m.what.Plural, f.Err))
	if m.troubled || kubeclient.Gone(err) || !answered(err) {
		m.log.Debug("watch ended", slog.Any(logline.KeyError, err))
		return nil
	}
	m.troubled = true
	m.log.Warn("watch rejected by the API server, will retry", slog.Any(logline.KeyError, err))
	return nil
}
