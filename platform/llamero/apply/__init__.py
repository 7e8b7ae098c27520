"""Models, deployments and keys as code: a file says what there should be, ``manage.py apply`` sees
to it.
"""
