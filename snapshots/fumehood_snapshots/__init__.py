"""Offline search over sealed snapshots of documents, and live pages that are recorded.

Rooms, from the ground up; each imports only from those above it::

    errors      what can go wrong, a closed tree
    analysis    text to terms: normal form, stop words, stemmer
    format      the folder: layout, manifest, mapped arrays and strings, verification
    captures    raw pages as WARC, bounded while they are unpacked
    documents   one document, and the store that reads it back
    extraction  HTML to text
    index       BM25: counts, weights, scores, the cut at k, filters
    snippets    the best window of a document for a query
    snapshot    all of the above over one sealed folder, open for search
    comparison  what differs between two snapshots
    web         live fetching behind an allow-list, recorded and replayed
    sources     inputs: JSON lines, folders, WARC files, recordings
    build       resumable, parallel, the same bytes twice
    library     what agents use: search and open_page, with an allowance
    metrics     recall, nDCG, reciprocal rank against judgements
    questions   what to ask of a snapshot, where the answer stands, and what it is
    pythondoc   Python's documentation as Debian packages it, with questions and judgements
    almanac     a small library of our own writing, with questions and judgements
    bench       costs, as ratios against other libraries
    cli         the command group ``snapshot``

Knows nothing about agents, episodes, boxes or scores of episodes, and never imports ``runner``.
"""
