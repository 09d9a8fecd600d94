package kube

import (
	"maps"
	"reflect"
	"sync"
)

// store is the cache of one resource.
type store[T any] struct {
	mu     sync.Mutex
	items  map[string]T // by objectKey
	synced bool         // a list was stored at least once
	live   bool         // a watch is open
	next   chan struct{}
}

func newStore[T any]() *store[T] {
	return &store[T]{items: map[string]T{}, next: make(chan struct{})}
}

func objectKey(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// get returns an item. current reports whether a missing item does not exist on the API
// server either: the store is synced and a watch is open.
func (s *store[T]) get(key string) (item T, found, current bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	item, found = s.items[key]
	return item, found, s.synced && s.live
}

// count counts the items that match.
func (s *store[T]) count(match func(T) bool) (n int, synced bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, item := range s.items {
		if match(item) {
			n++
		}
	}
	return n, s.synced
}

// selected returns the items that match, and the item of a key, as of one moment.
func (s *store[T]) selected(match func(T) bool, key string) (items []T, of T, synced bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, item := range s.items {
		if match(item) {
			items = append(items, item)
		}
	}
	return items, s.items[key], s.synced
}

// changed returns a channel that is closed at the next change. alive reports whether a
// watch is open.
func (s *store[T]) changed() (next <-chan struct{}, alive bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next, s.live
}

// size returns the number of items.
func (s *store[T]) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.items)
}

// set stores an item and reports whether it changed.
func (s *store[T]) set(key string, item T) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.items[key]; ok && reflect.DeepEqual(old, item) {
		return false
	}
	s.items[key] = item
	s.notifyLocked()
	return true
}

// remove removes an item and reports whether it was there.
func (s *store[T]) remove(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.items[key]; !ok {
		return false
	}
	delete(s.items, key)
	s.notifyLocked()
	return true
}

// replace replaces all items and reports whether anything changed, which the first list
// always does.
func (s *store[T]) replace(items map[string]T) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	same := s.synced && maps.EqualFunc(s.items, items, func(a, b T) bool { return reflect.DeepEqual(a, b) })
	s.synced = true
	if same {
		return false
	}
	s.items = items
	s.notifyLocked()
	return true
}

// setLive records whether a watch is open. A change wakes the waiters.
func (s *store[T]) setLive(live bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live != live {
		s.live = live
		s.notifyLocked()
	}
}

func (s *store[T]) notifyLocked() {
	close(s.next)
	s.next = make(chan struct{})
}
