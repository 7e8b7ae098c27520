from typing import Any

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


def keep_younger_ones_apart(apps: Any, schema_editor: Any) -> None:
    """Of several deployments of a model the oldest had all requests; let it be so."""
    deployments = apps.get_model("models_registry", "Deployment").objects
    oldest = deployments.values("model").annotate(oldest=models.Min("pk")).values("oldest")
    deployments.exclude(pk__in=list(oldest.values_list("oldest", flat=True))).update(share=0)


class Migration(migrations.Migration):

    dependencies = [
        ('models_registry', '0004_share_prefixes_in_teams'),
    ]

    operations = [
        migrations.AddField(
            model_name='deployment',
            name='is_draining',
            field=models.BooleanField(default=False, editable=False),
        ),
        migrations.AddField(
            model_name='deployment',
            name='last_error',
            field=models.TextField(blank=True, editable=False),
        ),
        migrations.AddField(
            model_name='deployment',
            name='last_error_at',
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='deployment',
            name='last_error_log',
            field=models.TextField(blank=True, editable=False, verbose_name='end of the log'),
        ),
        migrations.AddField(
            model_name='deployment',
            name='share',
            field=models.PositiveIntegerField(default=1, help_text="How much of the model's requests it takes, in relation to the model's other deployments: with 9 and 1, one of ten callers goes to the second. A caller or a conversation stays where it is. 0: it stands by, and serves when the others cannot.", validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(1000)], verbose_name='share of requests'),
        ),
        migrations.AddField(
            model_name='model',
            name='fallback',
            field=models.ForeignKey(blank=True, help_text='Answers while no deployment of this model can: all have failed, wait for room, or are stopped. A key that is limited to some models must be allowed both.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='fallback_for', to='models_registry.model', verbose_name='fallback model'),
        ),
        migrations.AlterField(
            model_name='model',
            name='description',
            field=models.TextField(blank=True, help_text='For people. Markdown: headings, lists, tables, links, code.'),
        ),
        migrations.RunPython(keep_younger_ones_apart, migrations.RunPython.noop),
    ]
