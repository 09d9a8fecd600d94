// Package kubeclient lists and watches Kubernetes objects, for the daemon, for cnictl and
// for the metrics helper. What to do with the objects, with failures and with an
// unavailable API server is their decision.
//
// It uses client-go's configuration, credentials and TLS, but not its reflector. With four
// reflectors of slim types the daemon is 300 kB larger and starts as fast, but
//
//   - the reflector's pauses, of up to 60 s, do not end when the API server is back, and
//     only its own retries continue without a new list: a thousand nodes whose
//     connections were reset would all list at once;
//   - responses, lists and objects are unbounded, and one object that cannot be decoded
//     ends the watch of all;
//   - it continues to watch from the last version after an outage of any length, which
//     shows nothing after a restore from a backup;
//   - it never gives up, as cnictl must when a permission is missing.
//
// What is the same: a follower lists at resource version 0 and later at no older version
// than it has seen (the API server answers both from its cache, if Cached), watches with
// bookmarks from the last version seen, and lists again when that version is gone.
//
// Objects are decoded from the stream one by one, so that neither long lists nor large
// objects cost memory, and every object, page and list has a limit.
package kubeclient
