"""Offline search over sealed snapshots of documents, and live pages that are recorded.

Rooms, from the ground up; each sees only those above it::

    errors      what can go wrong, a closed tree
    format      the folder: layout, manifest, mapped arrays, mapped strings, verification
    documents   one document, and the store that reads it back
    analysis    text to terms: normal form, stop words, stemmer
    captures    raw pages as WARC, bounded while they are unpacked
    extraction  HTML to text
    index       BM25: postings, weights, scores, the cut at k, filters
    snippets    the best window of a document for a query
    sources     inputs: JSON lines, folders, WARC, recordings
    build       resumable, parallel, the same bytes twice
    web         live fetching behind an allow-list, recorded and replayed
    library     what agents use: search and open_page with budgets
    metrics     recall, nDCG, MRR against judgements
    pythondoc   a snapshot of Debian's Python documentation with questions and judgements
    cli         the command group ``snapshot``
    bench       costs as ratios against other libraries

Knows nothing about agents, episodes, boxes or scores of episodes, and never imports ``runner``.
"""
