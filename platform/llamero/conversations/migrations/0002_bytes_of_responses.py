"""Say what each stored response takes, so that those of one key can be bounded."""

from django.db import migrations, models
from django.db.models.functions import Coalesce, Length


def measure(apps, schema_editor):
    """Measure what is stored by now."""
    size = Length("question") + Coalesce(Length("outcome"), 0)
    apps.get_model("conversations", "StoredResponse").objects.update(num_bytes=size)


class Migration(migrations.Migration):
    dependencies = [("conversations", "0001_stored_responses")]

    operations = [
        migrations.AddField(
            model_name="storedresponse",
            name="num_bytes",
            field=models.PositiveBigIntegerField(
                default=0, editable=False, verbose_name="bytes"
            ),
        ),
        migrations.RunPython(measure, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name="storedresponse",
            index=models.Index(
                fields=["owner", "used_at", "num_bytes", "state"], name="responses_of_owner"
            ),
        ),
    ]
