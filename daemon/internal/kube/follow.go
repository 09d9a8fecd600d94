package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnictl/daemon/api/logline"
)

// Times of a watch.
const (
	// The API server ends a watch after a time between one and two of these, so that
	// connections spread over its replicas again (as client-go asks for).
	watchPeriod = 5 * time.Minute
	// steady is how long a watch must have lasted to count as a success although it
	// showed nothing.
	steady = 10 * time.Second
	// staleAfter is how long the API server may be away until a list is asked for in
	// place of a watch from the last version: it may come back with older data, from a
	// backup, and a watch from a version in the future shows nothing.
	staleAfter = time.Minute
)

// pageSize is asked for where the API server may have to read etcd.
const pageSize = 500

// follower keeps one store in step with the API server.
type follower[T any] struct {
	c        *Client
	what     resource
	selector string // field selector; "" = all
	parse    func(raw []byte) (T, error)
	store    *store[T]
	changed  func()
	log      *slog.Logger

	version  string // last one seen; "" = none
	listed   bool   // what is in the store belongs to version
	fresh    bool   // list with a consistent read: the last version is gone
	failures int
	lastGood time.Time
	troubled bool   // it was logged that the watch fails
	unusable string // the last thing logged about an object
}

// run follows until ctx ends.
func (f *follower[T]) run(ctx context.Context) {
	for ctx.Err() == nil {
		back := f.c.reach.back()
		err := f.step(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			f.lastGood = time.Now()
			continue
		}
		f.tell(err)
		f.plan(err)
		f.failures++
		f.wait(ctx, back)
	}
}

// step lists or watches. nil means to go on at once.
func (f *follower[T]) step(ctx context.Context) error {
	if !f.listed {
		return f.list(ctx)
	}
	return f.watch(ctx)
}

// plan decides how to go on after an error.
func (f *follower[T]) plan(err error) {
	switch {
	case !gone(err):
		if !f.lastGood.IsZero() && time.Since(f.lastGood) > staleAfter {
			f.listed = false
		}
	case f.listed: // by the watch: a list at no older version will do
		f.listed = false
	default: // by the list as well
		f.fresh = true
	}
}

// gone reports that the API server cannot serve from the version it was asked for: it
// has forgotten it or does not know it yet.
func gone(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// wait pauses, but not for longer than the API server is away.
func (f *follower[T]) wait(ctx context.Context, back <-chan struct{}) {
	timer := time.NewTimer(f.c.pauses.after(f.failures))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-back:
		f.failures = 0
	case <-ctx.Done():
	}
}

// tell logs what the API server refuses, once. That it is away is told by Lost; that a
// version is gone is ordinary.
func (f *follower[T]) tell(err error) {
	if f.troubled || gone(err) || !answered(err) {
		f.log.Debug("watch ended", slog.Any(logline.KeyError, err))
		return
	}
	f.troubled = true
	f.log.Warn("the API server refuses a watch, will be tried again", slog.Any(logline.KeyError, err))
}

// works notes that a watch shows something.
func (f *follower[T]) works() {
	f.failures, f.lastGood = 0, time.Now()
	if f.troubled {
		f.troubled = false
		f.log.Info("the API server serves the watch again")
	}
}

// list reads all objects into the store.
func (f *follower[T]) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, f.c.limits.list)
	defer cancel()
	items, token := map[string]T{}, ""
	for {
		meta, err := f.page(ctx, token, items)
		if err != nil {
			return f.c.failed(fmt.Errorf("list %s: %w", f.what.plural, err))
		}
		if token = meta.Continue; token == "" {
			f.version, f.listed, f.fresh = meta.ResourceVersion, true, false
			break
		}
	}
	if f.store.replace(items) {
		f.changed()
	}
	return nil
}

// page reads one page of the list into items.
func (f *follower[T]) page(ctx context.Context, token string, items map[string]T) (listMeta, error) {
	request := f.c.rest.Get().AbsPath(f.what.everywhere()).MaxRetries(0)
	if f.selector != "" {
		request.Param("fieldSelector", f.selector)
	}
	switch {
	case token != "":
		request.Param("continue", token).Param("limit", strconv.Itoa(pageSize))
	case f.fresh:
		request.Param("limit", strconv.Itoa(pageSize))
	case f.version == "":
		request.Param("resourceVersion", "0").Param("limit", strconv.Itoa(pageSize))
	default:
		// Without a limit, which would send the API server to etcd for all the cluster's
		// objects: its cache has an index for what is asked here.
		request.Param("resourceVersion", f.version)
	}
	body, err := request.Stream(ctx)
	if err != nil {
		return listMeta{}, err
	}
	defer func() { _ = body.Close() }()
	return readList(body, func(raw []byte) error {
		if len(items) >= maxItems {
			return fmt.Errorf("there are more than %d", maxItems)
		}
		key, _, item, err := f.read(raw)
		if err == nil {
			items[key] = item
		}
		return nil
	})
}

// read parses an object. One that cannot be read is told of and left out.
func (f *follower[T]) read(raw []byte) (key, version string, item T, err error) {
	var object struct {
		Metadata struct {
			Namespace       string `json:"namespace"`
			Name            string `json:"name"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err = json.Unmarshal(raw, &object); err == nil {
		item, err = f.parse(raw)
	}
	key = objectKey(object.Metadata.Namespace, object.Metadata.Name)
	if err != nil {
		f.tellUnusable(key, err)
	}
	return key, object.Metadata.ResourceVersion, item, err
}

// tellUnusable logs what is wrong with an object, not again each time that it comes.
func (f *follower[T]) tellUnusable(key string, err error) {
	if text := key + ": " + err.Error(); text != f.unusable {
		f.unusable = text
		f.log.Warn("an object of the API server cannot be used", slog.String(logline.KeyValue, key), slog.Any(logline.KeyError, err))
	}
}

// watch applies what changes until the watch ends.
func (f *follower[T]) watch(ctx context.Context) error {
	seconds := int(watchPeriod.Seconds()) + int(f.c.pauses.chance(watchPeriod).Seconds())
	// The API server ends the watch; the limit is for the case that nobody does.
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+f.c.limits.open)
	defer cancel()
	body, err := f.open(ctx, cancel, seconds)
	if err != nil {
		return f.c.failed(fmt.Errorf("watch %s: %w", f.what.plural, err))
	}
	defer func() { _ = body.Close() }()
	f.store.setLive(true)
	defer f.store.setLive(false)
	started := time.Now()
	frames, err := f.apply(newStream(body))
	worked := frames > 0 || time.Since(started) > steady
	if worked {
		f.works()
	}
	switch {
	case errors.Is(err, io.EOF) && worked:
		return nil
	case errors.Is(err, io.EOF):
		err = errors.New("it ended at once")
	}
	return f.c.failed(fmt.Errorf("watch %s: %w", f.what.plural, err))
}

// open asks for a watch. Only the answer's head has a limit of its own.
func (f *follower[T]) open(ctx context.Context, cancel context.CancelFunc, seconds int) (io.ReadCloser, error) {
	request := f.c.rest.Get().AbsPath(f.what.everywhere()).MaxRetries(0).
		Param("watch", "true").Param("allowWatchBookmarks", "true").
		Param("resourceVersion", f.version).Param("timeoutSeconds", strconv.Itoa(seconds))
	if f.selector != "" {
		request.Param("fieldSelector", f.selector)
	}
	late := time.AfterFunc(f.c.limits.open, cancel)
	defer late.Stop()
	return request.Stream(ctx)
}

// apply reads frames until the stream ends, and counts them.
func (f *follower[T]) apply(s stream) (frames int, err error) {
	for {
		event, err := s.readFrame()
		if err != nil {
			return frames, err
		}
		if err := f.applyFrame(event); err != nil {
			return frames, err
		}
		if frames++; frames == 1 {
			f.works()
		}
	}
}

func (f *follower[T]) applyFrame(event frame) error {
	if event.Type == bookmark {
		var object struct {
			Metadata listMeta `json:"metadata"`
		}
		if err := json.Unmarshal(event.Object, &object); err != nil {
			return err
		}
		return f.seen(object.Metadata.ResourceVersion)
	}
	key, version, item, err := f.read(event.Object)
	switch {
	case err != nil:
		// What it was is no longer true, and what it is cannot be used.
		if f.store.remove(key) {
			f.changed()
		}
	case event.Type == deleted:
		if f.store.remove(key) {
			f.changed()
		}
	case f.store.size() >= maxItems:
		return fmt.Errorf("there are more than %d", maxItems)
	case f.store.set(key, item):
		f.changed()
	}
	return f.seen(version)
}

func (f *follower[T]) seen(version string) error {
	if version == "" {
		return errors.New("an event has no resourceVersion")
	}
	f.version = version
	return nil
}
