"""Offline search over sealed snapshots of documents, and recorded live pages.

Packages, from the lowest to the highest; each imports only from those above it in this list::

    errors      a closed tree of errors
    analysis    text to terms: normal form, stop words, stemmer
    format      the folder: layout, manifest, memory-mapped arrays and strings, verification
    captures    raw pages as WARC, unpacked in bounded memory
    documents   one document, and the store that reads it
    extraction  HTML to text
    index       BM25: counts, weights, scores, selection of the best k, filters
    snippets    the best window of a document for a query
    snapshot    a snapshot folder, opened for search
    comparison  differences between two snapshots
    web         live fetching behind an allow-list, recorded and replayed
    sources     inputs: JSON Lines, folders, WARC files, recordings
    build       resumable, parallel and reproducible builds
    library     the tools of agents: search and open_page
    metrics     recall, nDCG and reciprocal rank against judgements
    questions   questions on a snapshot, with judgements and answers
    pythondoc   Debian's package of Python's documentation, with questions
    almanac     a small bundled library, with questions
    cli         the command group ``snapshot``

This package does not import the runner and does not depend on agents, episodes or boxes.
"""
