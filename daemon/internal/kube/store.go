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
	synced bool         // it has held what the API server has, at some time
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

// get returns an item. current reports whether one that is not found is not there: the
// store is in step and a watch is open.
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

// changed is closed at the next change. alive reports whether a watch would show one.
func (s *store[T]) changed() (next <-chan struct{}, alive bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next, s.live
}

// size is how many items there are.
func (s *store[T]) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.items)
}

// set stores an item and reports whether that changed anything.
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

// remove takes an item out and reports whether it was there.
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

// replace puts a whole list in place of all items, and reports whether that changed
// anything.
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

// setLive reports whether a watch is open. Who waits for a change asks again.
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
