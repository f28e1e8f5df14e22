// SPDX-License-Identifier: Apache-2.0

package matching

// list is a doubly linked list whose links are in its members: adding and removing
// allocates nothing.
type list[T any] struct {
	first, last *link[T]
	n           int
}

// link is a member's place in at most one list.
type link[T any] struct {
	of         *T // the member itself; set once
	in         *list[T]
	prev, next *link[T]
}

// pushBack adds a member that is in no list.
func (l *list[T]) pushBack(e *link[T]) { l.insertBefore(e, nil) }

// pushFront adds a member that is in no list. Lists of what is not in use are stacks:
// what was used last is in the cache.
func (l *list[T]) pushFront(e *link[T]) { l.insertBefore(e, l.first) }

// insertBefore adds e, which is in no list, before at, or as the last one if at is nil.
func (l *list[T]) insertBefore(e, at *link[T]) {
	prev := l.last
	if at != nil {
		prev, at.prev = at.prev, e
	} else {
		l.last = e
	}
	e.in, e.prev, e.next = l, prev, at
	if prev != nil {
		prev.next = e
	} else {
		l.first = e
	}
	l.n++
}

// leave takes a member out of the list that it is in, if any.
func (e *link[T]) leave() {
	l := e.in
	if l == nil {
		return
	}
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		l.first = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		l.last = e.prev
	}
	e.in, e.prev, e.next = nil, nil, nil
	l.n--
}

// popFront takes out the first member and returns it, or nil.
func (l *list[T]) popFront() *T {
	e := l.first
	if e == nil {
		return nil
	}
	e.leave()
	return e.of
}
