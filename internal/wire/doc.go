// SPDX-License-Identifier: Apache-2.0

// Package wire is the language that two nodes speak: frames, the operation records and
// results inside them, the encapsulations around them, and the text form of addresses.
//
// In the life of an operation it is used on both sides of the cable. The initiator's
// poller packs records into a payload with RecordWriter, puts a Header before it, seals
// the frame with SealBy and wraps it with a Template. The target's poller unwraps with
// Decap, finds the session with Peek, opens the frame with Header.Open, checks it with
// Validate, walks the records with RecordReader and packs the results with
// ResponseWriter; the initiator reads those with ResponseReader.
//
// Everything here is a pure function on bytes. Nothing allocates, nothing keeps a
// reference beyond the views that its documentation names, and no input, however hostile,
// makes it panic: input that cannot be understood is refused with a Reason. All integers
// of the frame are little-endian; the headers around it are in network order.
//
// The package knows operations and datatypes as plain numbers; the only property of a
// datatype that it needs is the size of an element. Whether an operation is valid for a
// datatype is for the executor to say.
package wire
