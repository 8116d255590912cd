-- What the published n00dles 0.3 leaves behind after a chain with a fan-out and a branch, killed before its last node; and damage.
CREATE TABLE runs (run_id TEXT PRIMARY KEY, state TEXT NOT NULL, updated_at REAL NOT NULL);
INSERT INTO runs VALUES ('half-done', '{"run_id": "half-done", "inputs": {"topic": "agentic search"}, "completed": {"researcher": "3 facts", "pros": ["fast", "caf\u00e9"], "cons": null, "parallel[pros,cons]": {"pros": ["fast", "caf\u00e9"], "cons": null}, "triage": {"category": "billing"}, "billing": {"title": "Bill", "price": 1.0, "pages": 1}, "branch[billing,support]": {"title": "Bill", "price": 1.0, "pages": 1}}, "order": ["researcher", "cons", "pros", "parallel[pros,cons]", "triage", "billing", "branch[billing,support]"]}', 1764000000.5);
INSERT INTO runs VALUES ('fresh', '{"run_id": "fresh", "inputs": {"topic": "x"}, "completed": {}, "order": []}', 1764000001.0);
INSERT INTO runs VALUES ('damaged', '{"run_id": "damaged", "inputs": {"topic": "x"}, "compl', 1764000002.0);
INSERT INTO runs VALUES ('stranger', '{"run_id": "somebody-else", "inputs": {}, "completed": {}, "order": []}', 1764000003.0);
