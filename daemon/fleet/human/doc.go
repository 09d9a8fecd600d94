// Package human writes counts and times the way people read them, and orders names the way people
// do, for the sentences of documents and for everything that shows them.
package human
